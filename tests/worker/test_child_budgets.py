"""Budgets of runs in child processes: a child, or its worker too, dies with a reserved ticket; the limit holds."""

import signal

import pytest

from runtime_persist import Budget
from runtime_persist.testing.faults import check_invariants, read_rows
from tests.fixtures.raw import wait_until
from tests.support import child_graphs, subprocesses
from tests.support.leases import run_out
from tests.support.station import Station


@pytest.fixture
def station():
    with Station() as made:
        yield made


def thinks(node, number, answer):
    node.tell("think", number=number)
    assert node.hears() == answer


@pytest.mark.parametrize("dies", ["child", "child-and-worker"])
def test_a_ticket_that_a_dead_child_had_reserved_is_taken_by_the_next_try_and_the_limit_holds(
    runtime, shared_url, fork, station, raw, dies
):
    registered = child_graphs.registry["g"]
    runtime.bind(registered.graph, name="g", retry=registered.retry)
    run = runtime.runs.start("g", {"log": [station.address]}, thread_id="t", budget=Budget(loops=2))

    def spent():
        return tuple(run.record().budget["loops"])

    worker = fork(subprocesses.worker, shared_url)
    worker.until("ready")
    node = station.next()
    thinks(node, 0, "called")
    node.tell("think", number=1, stays=True)
    assert node.hears() == "thinks"
    assert spent() == (2, 1, 1)
    if dies == "child":
        node.send(signal.SIGKILL)
    else:
        worker.kill()
        node.until_gone()
        run_out(raw)
        worker = fork(subprocesses.worker, shared_url)
    node = station.next()
    assert spent() == (2, 1, 1)
    thinks(node, 0, "replayed")
    thinks(node, 1, "called")
    assert spent() == (2, 0, 2)
    node.tell("think", number=2)
    wait_until(lambda: run.record().status == "waiting_approval", "the limit is reached")
    assert run.questions()[0].kind == "budget"
    assert run.resume(Budget(loops=3)) == "queued"
    node = station.next()
    for number, answer in enumerate(("replayed", "replayed", "called")):
        thinks(node, number, answer)
    node.tell("return", value="done")
    assert run.result(timeout=60)["log"][1:] == ["done", "after"]
    assert spent() == (3, 0, 3)
    assert check_invariants(read_rows(runtime.engine)) == []
