"""DB-12 with real processes: the last ticket, and tickets of processes that are killed."""

from __future__ import annotations

import collections

import pytest

from runtime_persist import Budget
from runtime_persist.commands.start_owned_run import StartOwnedRun
from runtime_persist.engine import requests
from runtime_persist.model.ids import new_id
from runtime_persist.testing.faults import check_invariants, read_rows
from runtime_persist.testing.live_invariants import look
from tests.acceptance import budget_programs as programs
from tests.fixtures.raw import wait_until
from tests.soak.programs import Outside


@pytest.fixture
def runtime(open_runtime):
    return open_runtime()


def spent(raw):
    """Of the run, or of the invocations in it when they are what is limited."""
    limit = "coalesce(loops_limit, invocation_loops_limit) AS loops_limit"
    row = raw.one(f"SELECT {limit}, loops_reserved, loops_consumed FROM rp_runs")
    return tuple(row.values())


@pytest.mark.parametrize(
    ("word", "budget"),
    [
        pytest.param("consume", Budget(loops=1), id="run-consume"),
        pytest.param("release", Budget(loops=1), id="run-release"),
        pytest.param("consume", Budget(per_invocation=Budget(loops=1)), id="invocation-consume"),
    ],
)
def test_db12_of_two_processes_at_the_last_ticket_one_gets_it_and_the_other_waits_until_it_is_settled(
    runtime, shared_url, fork, raw, word, budget
):
    engine, serde = runtime.engine, runtime.checkpointer.serde
    asked = requests.request(engine, serde, "g", None, thread_id="t", budget=budget)
    command = StartOwnedRun(
        command_id=new_id(),
        request=asked,
        worker_id="w",
        attempt_id=new_id(),
        ttl_us=600_000_000,
        **requests.thread_of(engine, "t"),
    )
    taken = engine.coordinator.commit(command).result()
    lease = {
        "space": engine.space, "run_id": asked.run_id, "thread_id": "t", "epoch": taken.result["epoch"],
        "worker_id": "w", "attempt_id": command.attempt_id,
    }  # fmt: skip
    within = budget.per_invocation is not None
    first, second = (fork(programs.takes_the_last, shared_url, lease, number, within) for number in ("#1", "#2"))
    for child in (first, second):
        child.until("ready")
    first.give_the_word()
    first.until("has it")
    second.give_the_word()
    second.until("waits")
    refused = "SELECT count(*) FROM rp_tickets WHERE state = 'reserved'"
    assert raw.value(refused) == 1
    assert spent(raw) == (1, 1, 0)
    assert look(engine) == []
    first.give_the_word(word)
    assert first.result() == "had it"
    if word == "consume":
        assert second.result() == "BUDGET_EXHAUSTED"
        assert spent(raw) == (1, 0, 1)
        assert raw.value("SELECT count(*) FROM rp_operations") == 1
    else:
        second.until("has it")
        assert spent(raw) == (1, 1, 0)
        second.give_the_word("consume")
        assert second.result() == "had it"
        assert spent(raw) == (1, 0, 1)
    assert raw.value("SELECT status FROM rp_runs") == "running"
    assert check_invariants(read_rows(engine)) == []


def test_a_killed_call_keeps_its_ticket_and_the_next_worker_takes_no_second_one_and_stops_at_the_limit(
    runtime, shared_url, fork, raw, tmp_path
):
    outside = Outside(tmp_path / "outside")
    runtime.bind(programs.budgeted_graph(outside.path), name="agent")
    run = runtime.runs.start("agent", {"log": []}, thread_id="t", budget=Budget(loops=2))
    killed = fork(programs.budgeted, shared_url, str(outside.path), stays=True)
    killed.until("in call")
    assert spent(raw) == (2, 1, 1)
    killed.kill()
    fork(programs.budgeted, shared_url, str(outside.path), stays=False)
    wait_until(lambda: run.record().status == "waiting_approval", "the next worker has come to the limit")
    assert spent(raw) == (2, 0, 2)
    assert run.questions()[0].kind == "budget"
    runtime.runs.raise_budget(run.run_id, Budget(loops=3))
    assert run.result(timeout=60)["log"] == ["answer 0", "answer 1", "answer 2"]
    calls = collections.Counter(outside.path.read_text().splitlines())
    assert calls == {"call-0": 1, "call-1": 2, "call-2": 1}  # the killed one is repeated: its on_unknown is retry
    assert spent(raw) == (3, 0, 3)
    assert check_invariants(read_rows(runtime.engine)) == []
