"""Rows V1 to V14: the verification list of the state model."""

from __future__ import annotations

import ast
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from runtime_persist.commands import COMMANDS
from runtime_persist.commands.finalize_run import FinalizeRun
from runtime_persist.commands.request_stop import RequestStop
from runtime_persist.errors import LeaseReleased, NothingToClaim, RuntimePersistError
from runtime_persist.testing.faults import check_invariants, read_rows
from tests.fixtures.contracts import changed
from tests.fixtures.world import World
from tests.support import programs
from tests.support.graphs import chain, config, says
from tests.support.leases import run_out

RACERS = 8


def ending(world, held, command=FinalizeRun.cancelled, **fields):
    of_run = {"run_id": held.run_id, "epoch": held.epoch}
    return command(**(of_run | world.of_thread(held.thread_id) | fields))


def succeeded(world, held):
    data, blobs = world.payload("what it returned")
    return ending(world, held, FinalizeRun.succeeded, result=data, owner=world.engine.owner, blobs=blobs)


def outcome(world, command):
    try:
        return world.commit(command).result
    except RuntimePersistError as error:
        return error


def race(world, *commands):
    """Commit all at once; return what became of each."""
    begin = threading.Barrier(len(commands))

    def one(command):
        begin.wait()
        return outcome(world, command)

    with ThreadPoolExecutor(len(commands)) as pool:
        return list(pool.map(one, commands))


def test_v2_of_transitions_at_once_one_succeeds_and_the_others_are_told_of_a_conflict(world):
    run_id = world.queued()
    found = race(world, *(world.claim_run(run_id) for _ in range(RACERS)))
    won = [one for one in found if not isinstance(one, RuntimePersistError)]
    assert [one["epoch"] for one in won] == [1]
    assert {type(one) for one in found if isinstance(one, RuntimePersistError)} == {NothingToClaim}
    assert (world.run(run_id)["version"], world.count("rp_attempts")) == (2, 1)
    assert world.events(run_id).count("lease.claimed") == 1


REFUSED = {
    "sqlite": "CREATE TRIGGER refused BEFORE {what} ON {table} BEGIN SELECT RAISE(ABORT, 'refused'); END",
    "postgresql": (
        "CREATE FUNCTION refused() RETURNS trigger AS $$BEGIN RAISE EXCEPTION 'refused'; END$$ LANGUAGE plpgsql",
        "CREATE TRIGGER refused BEFORE {what} ON {table} FOR EACH STATEMENT EXECUTE FUNCTION refused()",
    ),
}


def refuse(world, table, what):
    """Let the database refuse every statement of a kind on a table from now on."""
    given = REFUSED[world.engine.url.dialect]
    for statement in (given,) if isinstance(given, str) else given:
        world.raw.rows(statement.format(table=table, what=what))


def transitions(world):
    """Commands that change a run's row and tell of it."""
    queued, held, left = world.queued("queued"), world.owned("held"), world.owned("left")
    world.expire(left)
    return [
        world.claim_run(queued, "queued"),
        RequestStop(run_id=queued, **world.base()),
        succeeded(world, held),
        world.fail_attempt(held),
        world.claim_run(left.run_id, "left"),
        world.begin(held),
    ]


@pytest.fixture
def own_world(empty_url, open_engine):
    """A world on a database that no other test uses: it is damaged."""
    with World(open_engine(empty_url)) as made:
        yield made


@pytest.mark.parametrize(("table", "what"), [("rp_runs", "UPDATE"), ("rp_events", "INSERT")])
def test_v3_v4_when_the_run_or_its_event_cannot_be_written_nothing_is(own_world, table, what):
    """V3: the run's update fails, and there is no event. V4: the event fails, and the run is as it was."""
    commands = transitions(own_world)
    refuse(own_world, table, what)
    for command in commands:
        with own_world.nothing_written(), pytest.raises(RuntimePersistError, match="refused"):
            own_world.commit(command)
    assert check_invariants(read_rows(own_world.engine)) == []


def test_v5_the_same_end_told_twice_is_one_end(world):
    held = world.owned()
    command = succeeded(world, held)
    world.commit(command)
    with world.nothing_written():
        assert world.commit(command).replayed
        world.refused(succeeded(world, held), LeaseReleased)
    assert world.events(held.run_id).count("run.succeeded") == 1


@pytest.mark.parametrize("round_no", range(6))
def test_v6_of_a_cancel_and_an_end_at_once_the_first_one_decides(world, round_no):
    held = world.owned()
    stop = RequestStop(run_id=held.run_id, reason="cancel", **world.base())
    pair = [stop, succeeded(world, held)]
    race(world, *(pair if round_no % 2 else reversed(pair)))
    run, events = world.run(held.run_id), world.events(held.run_id)
    first_is_cancel = "run.stop_requested" in events
    assert run["status"] == ("cancelled" if first_is_cancel else "succeeded")
    assert run["result"] is not None  # what it returned is kept
    assert sum(event.startswith("run.") and event.removeprefix("run.") == run["status"] for event in events) == 1
    assert world.commit(changed(stop, command_id="again")).result["status"] == run["status"]
    assert world.run(held.run_id) == run
    assert world.attempt(held.attempt_id)["status"] == run["status"]


def told(raw):
    return [
        raw.rows("SELECT run_id, status, version, event_seq, epoch, phase, worker_id FROM rp_runs ORDER BY run_id"),
        raw.rows("SELECT attempt_id, status, epoch, observed_state FROM rp_attempts ORDER BY attempt_id"),
        raw.rows("SELECT run_id, seq, type FROM rp_events ORDER BY run_id, seq"),
    ]


def test_v9_whoever_opens_the_database_again_sets_nothing_back(open_runtime, raw_of, shared_url, fork):
    """A live run of another process stays as it is; of one that is gone nothing is known, and nothing is guessed."""
    first = open_runtime()
    first.bind(chain({"node": says("x"), "after": says("y")}), name="g")
    raw = raw_of(first)
    run = first.runs.start("g", {"log": []}, thread_id="t")
    worker = fork(programs.worker, shared_url)
    worker.until("in node")
    queued = first.runs.start("g", {"log": []}, thread_id="t")
    before = told(raw)  # not all rows: the worker lives, and reports itself
    open_runtime()
    assert (told(raw), run.record().shown) == (before, "running")
    worker.kill()
    run_out(raw)
    before = raw.dump()
    again = open_runtime()
    shown = {one.run_id: one.shown for one in again.runs.list()}
    assert shown == {run.run_id: "unknown", queued.run_id: "queued"}
    assert raw.dump() == before


def events_of(runtime, graph, thread_id):
    runtime.bind(graph, name="g").invoke({"log": []}, config(thread_id))
    (run,) = runtime.runs.list(thread_id=thread_id)
    return [event.type for event in runtime.runs.handle(run.run_id).events()]


def test_v13_what_a_run_says_does_not_make_its_events_more_nor_larger(runtime, raw):
    """Long outputs are in checkpoints and streams; events count what happened."""
    quiet, loud = chain({"node": says("x")}), chain({"node": says("a line of a log\n" * 50_000)})
    assert events_of(runtime, quiet, "quiet") == events_of(runtime, loud, "loud")
    assert raw.value("SELECT max(length(payload)) FROM rp_events") < 1_000


def written_in(file):
    found = [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.FunctionDef)]
    return [node for node in found if node.name.startswith("test_")]


@pytest.mark.parametrize("name", sorted(spec.name for spec in COMMANDS.values()))
def test_v14_every_command_has_its_contract_on_every_database(name):
    """All tests of commands take the database from one fixture, and that is each kind of database in turn."""
    folder = Path(__file__).parents[1]
    tests = written_in(folder / "contract" / f"test_{name}.py")
    asked = {argument.arg for test in tests for argument in test.args.args} - {"self"}
    assert (
        asked & {"world", "engine", "saver"}
        or "contracts import" in (folder / "contract" / f"test_{name}.py").read_text()
    )
    (fixture,) = [
        node
        for node in ast.walk(ast.parse((folder / "fixtures" / "fix_engine.py").read_text()))
        if isinstance(node, ast.FunctionDef) and node.name == "engine_url"
    ]
    assert ast.unparse(fixture.decorator_list[0]) == "pytest.fixture(params=[FILE, MEMORY, POSTGRES])"
