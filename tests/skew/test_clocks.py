"""A worker whose clock is an hour wrong."""

from __future__ import annotations

import signal

import pytest

from runtime_persist import RetryPolicy, Runtime
from runtime_persist.model.states import FINAL_RUN
from runtime_persist.testing.faults import check_invariants, read_rows
from tests.fixtures.raw import wait_until
from tests.skew import clocks, programs
from tests.soak.programs import Outside
from tests.support.checkpoints import at

LEASE_SECONDS = 3.0


@pytest.fixture
def outside(tmp_path):
    return Outside(tmp_path / "outside")


@pytest.fixture
def world_of(raw_of, fork, opened, outside):
    """A world on a database."""

    def opens(url):
        runtime = opened(Runtime.open(url))
        return World(runtime, raw_of(runtime), fork, url, outside)

    return opens


class World:
    """Workers with clocks of their own, and runs for them."""

    def __init__(self, runtime, raw, fork, url, outside) -> None:
        self.runtime = runtime
        self.raw = raw
        self.fork = fork
        self.url = url
        self.outside = outside
        for name, graph in programs.graphs(None, outside).items():
            runtime.bind(graph, name=name)

    def worker(self, expected, **how):
        """Start a worker; ``expected``: by how many hours which of its clocks must be wrong."""
        child = self.fork(programs.worker, self.url, str(self.outside.path), LEASE_SECONDS, **how)
        _, said = child.until("ready")
        assert clocks.shifts(said) == expected
        return child

    def start(self, graph="waits", thread_id="t", **options):
        return self.runtime.runs.start(graph, {"log": []}, thread_id=thread_id, **options)

    def attempts(self, run):
        rows = self.raw.rows("SELECT cause, status FROM rp_attempts WHERE run_id = ? ORDER BY attempt_no", run.run_id)
        return [(row["cause"], row["status"]) for row in rows]

    def renewed(self, run, times):
        """Wait until the lease was renewed so often."""
        for _ in range(times):
            before = run.record().expires_us
            wait_until(lambda before=before: run.record().expires_us != before, "a renewal")

    def claimed_us(self, run, epoch):
        """Return when an epoch began, by the database's clock."""
        return self.raw.value(
            "SELECT created_us FROM rp_events WHERE run_id = ? AND type = 'lease.claimed' AND epoch = ?",
            run.run_id,
            epoch,
        )

    def effects(self):
        """Return key and epoch of each call that reached the outside, by run."""
        found = {}
        for run_id, *call in (line for line in self.outside.lines() if line[0] != "flaky"):
            found.setdefault(run_id, []).append(tuple(call))
        return found


def in_node(child, run):
    assert child.until("in node") == (run.run_id,)


def taken_over_when_it_ran_out(world, run, child, ended):
    """``ended`` is killed in it: ``child`` gets it when the lease ran out by the database's clock, not before."""
    ended.kill()
    before = run.record()
    in_node(child, run)
    assert world.claimed_us(run, before.epoch + 1) >= before.expires_us
    child.give_the_word("taken")
    assert run.result(timeout=30)["log"][-3:] == ["taken", "done", "ends"]
    assert world.attempts(run) == [("initial", "lost"), ("takeover", "succeeded")]


def one_line(world):
    """The checkpoints of each thread are one line whose ids only grow, and the rows fit together."""
    for thread_id in ("t", "other"):
        newest_first = [one.checkpoint["id"] for one in world.runtime.checkpointer.list(at(thread_id))]
        parents = [one.parent_config for one in world.runtime.checkpointer.list(at(thread_id))]
        assert newest_first == sorted(newest_first, reverse=True)
        assert [p["configurable"]["checkpoint_id"] for p in parents[:-1]] == newest_first[1:]
        assert world.runtime.checkpointer.get_tuple(at(thread_id)).checkpoint["id"] == newest_first[0]
    assert check_invariants(read_rows(world.runtime.engine)) == []


def nothing_changes(world, ahead, behind):
    """All that depends on time happens as it would with right clocks: one worker's is ahead, the other's behind."""
    first = ahead()
    one = world.start()
    in_node(first, one)
    second = behind()
    other = world.start(thread_id="other")
    in_node(second, other)

    for run in (one, other):  # neither takes for expired what the other renews
        world.renewed(run, 3)
        assert (run.record().shown, run.record().epoch) == ("running", 1)
    second.give_the_word("x")
    assert other.result(timeout=30)["log"] == ["begins", "x", "done", "ends"]
    assert world.attempts(other) == [("initial", "succeeded")]

    taken_over_when_it_ran_out(world, one, second, first)
    back = world.start()  # the same thread, from the clock behind to the clock ahead
    in_node(second, back)
    third = ahead()
    taken_over_when_it_ran_out(world, back, third, second)

    flaky = world.start("flaky", retry=RetryPolicy(backoff=0.5, jitter=0))
    late = world.start(deadline=1_800)
    in_node(third, late)
    third.give_the_word("in time")
    assert late.result(timeout=30)["log"][-3:] == ["in time", "done", "ends"]
    assert flaky.result(timeout=30)["log"][-1] == "flaky"
    assert world.attempts(flaky) == [("initial", "failed"), ("retry", "succeeded")]
    overdue = world.start(thread_id="overdue", deadline=2)
    in_node(third, overdue)
    wait_until(lambda: overdue.record().stop_reason, "it is told to stop")
    third.give_the_word("too late")
    wait_until(lambda: overdue.record().status in FINAL_RUN, "it ended")
    assert overdue.record().status == "timed_out"
    third.send(signal.SIGTERM)
    reports = third.result()
    assert {what for what, _ in reports} <= {"claimed", "finished", "stopped"}
    stops = [code for what, code in reports if what == "stopped"]
    assert stops == ["ValueError"] or (stops[0] == "ValueError" and len(stops) == 2)  # and the run that was stopped
    assert all(len(calls) == 1 for calls in world.effects().values())
    one_line(world)


def test_on_sqlite_pythons_clocks_and_checkpoint_ids_an_hour_ahead_and_behind_change_nothing(world_of, sqlite_url):
    world = world_of(sqlite_url)
    nothing_changes(
        world,
        lambda: world.worker({"python": 1, "sqlite": 0}, pythons_hours=1),
        lambda: world.worker({"python": -1, "sqlite": 0}, pythons_hours=-1),
    )


def test_on_postgresql_all_clocks_of_workers_an_hour_ahead_and_behind_change_nothing(world_of, postgres_url, tmp_path):
    world = world_of(postgres_url)
    wrong = {hours: {"python": hours, "sqlite": hours} for hours in (1, -1)}
    nothing_changes(
        world,
        lambda: world.worker(wrong[1], environment=clocks.all_shifted(tmp_path, 1)),
        lambda: world.worker(wrong[-1], environment=clocks.all_shifted(tmp_path, -1)),
    )


def test_without_a_compiler_all_clocks_of_a_process_can_be_wrong_too(fork, tmp_path):
    """The other tests look at the clocks of their workers; on a machine without one they rest on this."""
    child = fork(programs.tells, environment=clocks.all_shifted(tmp_path, 1, preload=False))
    assert clocks.shifts(child.result()) == {"python": 1, "sqlite": 1}


@pytest.mark.parametrize("hours", [1, -1])
def test_on_sqlite_a_worker_with_a_wrong_clock_may_take_over_early_but_never_twice_effects_nor_loses_a_write(
    world_of, sqlite_url, tmp_path, hours
):
    """SQLite's only clock is that of the process that asks.

    Ahead it takes what another holds; behind, another takes what it holds. Whoever was replaced writes nothing.
    """
    world = world_of(sqlite_url)
    wrong, right = {"python": hours, "sqlite": hours}, {"python": 0, "sqlite": 0}

    def skewed():
        return world.worker(wrong, environment=clocks.all_shifted(tmp_path, hours))

    robbed = skewed() if hours < 0 else world.worker(right)
    run = world.start()
    in_node(robbed, run)
    thief = world.worker(right) if hours < 0 else skewed()
    in_node(thief, run)  # although its holder renews its lease
    robbed.give_the_word("robbed")
    robbed.send(signal.SIGTERM)
    assert next(code for what, code in robbed.result() if what == "stopped") in {"LEASE_LOST", "LEASE_EXPIRED"}
    thief.give_the_word("thief")
    assert run.result(timeout=30)["log"] == ["begins", "thief", "done", "ends"]
    assert world.attempts(run) == [("initial", "lost"), ("takeover", "succeeded")]
    assert [epoch for _, epoch in world.effects()[run.run_id]] == ["2"]  # the robbed one was refused before its call

    begun = world.start(thread_id="other")
    in_node(thief, begun)
    thief.give_the_word("again")
    assert begun.result(timeout=30)["log"] == ["begins", "again", "done", "ends"]
    one_line(world)
