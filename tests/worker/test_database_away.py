"""The database cannot be used while a run is executed: that is no failure of the run, whoever executes it."""

from __future__ import annotations

import threading

import pytest

from runtime_persist import Runtime, operation
from runtime_persist.errors import DatabaseUnavailable
from runtime_persist.model.retry import NO_RETRY
from runtime_persist.worker import SubprocessRuntime, Worker
from tests.fixtures.raw import PostgresRaw, wait_until
from tests.support import child_graphs
from tests.support.graphs import chain, says
from tests.support.leases import run_out
from tests.support.station import Station
from tests.support.subprocesses import REGISTRY, working

# What a full disk says, at the calls of operations only: whatever ends the attempt could be committed.
FULL = {
    "postgresql": (
        """CREATE FUNCTION disk_is_full() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100'; END $$""",
        "CREATE TRIGGER full_disk BEFORE INSERT ON rp_operations FOR EACH ROW EXECUTE FUNCTION disk_is_full()",
    ),
    "sqlite": (
        """CREATE TRIGGER full_disk BEFORE INSERT ON rp_operations
        BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END""",
    ),
}
ROOM = {"postgresql": ("DROP FUNCTION disk_is_full CASCADE",), "sqlite": ("DROP TRIGGER full_disk",)}


class Disk:
    """The disk of a database: full, until there is room."""

    def __init__(self, raw, dialect) -> None:
        self.raw, self.dialect, self.is_full = raw, dialect, False

    def fill(self):
        self._run(FULL)
        self.is_full = True

    def make_room(self):
        self._run(ROOM)
        self.is_full = False

    def _run(self, statements):
        for statement in statements[self.dialect]:
            self.raw.rows(statement)


@pytest.fixture
def disk(runtime, raw):
    made = Disk(raw, runtime.engine.url.dialect)
    made.fill()
    yield made
    if made.is_full:
        made.make_room()


def attempts(raw):
    rows = raw.rows("SELECT cause, status FROM rp_attempts ORDER BY attempt_no")
    return [(row["cause"], row["status"]) for row in rows]


def test_a_run_that_could_not_be_written_is_left_taken_over_and_finished_though_it_has_no_retries(
    runtime, works, raw, disk
):
    @operation(name="effect", on_unknown="ask")
    def effect(*, idempotency_key):
        return "done"

    graphs = {"g": chain({"before": says("before"), "call": lambda _: {"log": [effect()]}})}
    runtime.bind(graphs["g"], name="g")
    run = runtime.runs.start("g", {"log": []}, thread_id="t", retry=NO_RETRY)
    stopped = [facts["code"] for what, facts in works(graphs) if what == "stopped"]
    assert stopped == ["DATABASE_UNAVAILABLE"]
    record = run.record()
    assert (record.status, record.failures) == ("running", 0)
    run_out(raw)
    disk.make_room()
    works(graphs)
    assert run.result(timeout=0)["log"] == ["before", "done"]
    assert attempts(raw) == [("initial", "lost"), ("takeover", "succeeded")]


def test_a_child_that_could_not_write_leaves_its_run_to_the_next_one(runtime, raw, disk):
    with SubprocessRuntime(REGISTRY) as children, Station() as station:
        runtime.bind(child_graphs.GRAPH, name="g")
        run = runtime.runs.start("g", {"log": [station.address]}, thread_id="t", retry=NO_RETRY)
        reports = []
        with working(runtime, children, report=lambda *told: reports.append(told)):
            station.next().tell("charge", what="5 EUR")
            wait_until(lambda: "stopped" in [what for what, _ in reports], "the attempt has ended")
            assert run.record().status == "running"
            disk.make_room()
            run_out(raw)
            node = station.next()
            node.tell("charge", what="5 EUR")
            assert node.hears() == "charged"
            node.tell("return", value="x")
            assert run.result(timeout=60)["log"][1:] == ["x", "after"]
    assert attempts(raw) == [("initial", "lost"), ("takeover", "succeeded")]
    assert [facts["code"] for what, facts in reports if what == "stopped"] == ["ATTEMPT_FAILED"]


def test_a_database_that_takes_no_connections_for_a_while_is_waited_for(postgres_server, postgres_url):
    """Somebody maintains it: 55000, which says nothing about any statement of a worker."""
    name = postgres_url.rpartition("/")[2].partition("?")[0]
    admin = PostgresRaw(postgres_server.dsn())
    waits = threading.Event()
    graph = chain({"node": says("x")})
    with Runtime.open(postgres_url) as runtime:
        runtime.bind(graph, name="g")
        worker = Worker(
            runtime, {"g": graph}, poll_seconds=0.02, report=lambda what, _: waits.set() if what == "waiting" else None
        )
        thread = threading.Thread(target=worker.run)
        thread.start()
        try:
            before = runtime.runs.start("g", {"log": []}, thread_id="before")
            assert before.result(timeout=60)["log"] == ["x"]
            admin.rows(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
            admin.rows("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = ?", name)
            assert waits.wait(60)
            with pytest.raises(DatabaseUnavailable, match="not currently accepting connections"):
                runtime.runs.start("g", {"log": []}, thread_id="meanwhile")
            admin.rows(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
            after = runtime.runs.start("g", {"log": []}, thread_id="after")
            assert after.result(timeout=60)["log"] == ["x"]
        finally:
            admin.rows(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
            worker.stop()
            thread.join()
            admin.close()
