"""Workers that are killed and stopped all the time finish every run, and repeat no effect unnoticed."""

from __future__ import annotations

import collections
import logging
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from runtime_persist import RetryPolicy, Runtime
from runtime_persist.testing.faults import check_invariants, read_rows
from runtime_persist.testing.live_invariants import look
from tests.soak import programs
from tests.soak.fleet import Fleet

_log = logging.getLogger("soak")
SLOTS, PLACES = 2, 6
"""Of each worker, and of the graph over all of them: four workers have more slots than it has places."""
PATIENT = RetryPolicy(max_attempts=1, max_takeovers=100)
CALLERS = 4
SAMPLE_SECONDS = 0.1
FENCED = {"LEASE_LOST", "LEASE_EXPIRED"}
AWAY = {"STORE_BUSY", "CONNECTION_LOST", "OUTCOME_UNKNOWN"}


@pytest.fixture
def outside(tmp_path):
    return programs.Outside(tmp_path / "outside")


@pytest.fixture
def troubles(tmp_path):
    return programs.Outside(tmp_path / "troubles")


@pytest.fixture
def fleet_of(shared_url, fork, raw, outside, troubles):
    """Workers on the runtime's database."""

    def make(places: int = PLACES, longer: float = 1) -> Fleet:
        options = (shared_url, str(outside.path), str(troubles.path), SLOTS, places, longer)
        return Fleet(lambda: fork(programs.worker, *options), raw, random.Random(5))

    return make


def call(runtime: Runtime, numbers: list[int]) -> dict[str, list[str]]:
    """Start a run for each number, as a caller does, and wait for each result."""
    started = [
        runtime.runs.start(
            programs.GRAPH, {"log": [], "n": n}, thread_id=f"t{n}", idempotency_key=f"run {n}", retry=PATIENT
        )
        for n in numbers
    ]
    return {run.run_id: run.result(timeout=600)["log"] for run in started}


def drain(runtime: Runtime, fleet: Fleet, size: int) -> dict[str, list[str]]:
    """Let callers start runs and wait for them, while workers are hit; look at all invariants all the time."""
    runtime.bind(
        programs.graph(programs.Outside(Path())), name=programs.GRAPH
    )  # so that it is known; never called here
    fleet.fill()
    results: dict[str, list[str]] = {}
    with ThreadPoolExecutor(CALLERS) as pool:
        callers = [pool.submit(call, runtime, list(range(first, size, CALLERS))) for first in range(CALLERS)]
        began = told_at = time.monotonic()
        while not all(caller.done() for caller in callers):
            assert look(runtime.engine) == []
            done = fleet.raw.value("SELECT count(*) FROM rp_runs WHERE status = 'succeeded'")
            fleet.wake()
            if fleet.is_due(done):
                fleet.strike()
            if time.monotonic() >= told_at + 5:
                told_at = time.monotonic()
                _log.info("%4.0f s  %4d done  %d kills  %d stops", told_at - began, done, fleet.kills, fleet.stops)
            threading.Event().wait(SAMPLE_SECONDS)
        for caller in callers:
            results |= caller.result()
    return results


def check_effects(raw, outside) -> collections.Counter[str]:
    """Each line outside is a try of the journal, the last of each call succeeded, and all others are unknown.

    Returns how often each key was used.
    """
    sql = (
        "SELECT o.idempotency_key AS key, o.run_id, t.epoch, t.status FROM rp_operations o "
        "JOIN rp_operation_tries t ON t.operation_id = o.operation_id"
    )
    tries = {(row["key"], row["epoch"]): row["status"] for row in raw.rows(sql)}
    succeeded = [key for (key, _), status in tries.items() if status == "succeeded"]
    assert len(succeeded) == len(set(succeeded))
    assert set(tries.values()) <= {"succeeded", "unknown"}
    lines = [(key, int(epoch)) for _, key, epoch in outside.lines()]
    assert len(set(lines)) == len(lines)
    assert set(lines) <= set(tries)
    assert {at for at, status in tries.items() if status == "succeeded"} <= set(lines)
    return collections.Counter(key for key, _ in lines)


def soak(runtime, fleet, raw, outside, troubles, size: int) -> dict[str, int]:
    results = drain(runtime, fleet, size)
    ended = fleet.end()
    assert [outcome[0] for outcome in ended] == ["returned"] * len(ended), ended
    assert sorted(results.values()) == sorted(programs.result_of(n) for n in range(size))

    told = raw.rows("SELECT run_id, count(*) AS times FROM rp_events WHERE type = 'run.succeeded' GROUP BY run_id")
    assert {row["run_id"]: row["times"] for row in told} == dict.fromkeys(results, 1)

    keys = {(run_id, key) for run_id, key, _ in outside.lines()}
    assert len(keys) == len({run_id for run_id, _ in keys}) == len({key for _, key in keys}) == size
    calls = check_effects(raw, outside)
    sql = (
        "SELECT o.idempotency_key AS key, count(*) AS tries FROM rp_operations o JOIN rp_operation_tries t "
        "ON t.operation_id = o.operation_id WHERE t.status = 'unknown' GROUP BY o.idempotency_key"
    )
    unknown = {row["key"]: row["tries"] for row in raw.rows(sql)}
    assert all(unknown.get(key, 0) >= times - 1 for key, times in calls.items())

    said = {(what, code) for what, code, _ in troubles.lines()}
    assert {code for what, code in said if what == "stopped"} <= FENCED, said
    assert {code for what, code in said if what == "waiting"} <= AWAY, said
    assert look(runtime.engine) == []
    assert check_invariants(read_rows(runtime.engine)) == []

    lost = {row["attempt_id"] for row in raw.rows("SELECT attempt_id FROM rp_attempts WHERE status = 'lost'")}
    figures = {
        "runs": size,
        "workers": fleet.size,
        "kills": fleet.kills,
        "kills that hit a run in starting or running": fleet.lost(lost),
        "stops": fleet.stops,
        "lost attempts": len(lost),
        "calls outside": sum(calls.values()),
        "keys used more than once": sum(times > 1 for times in calls.values()),
        "unknown tries": sum(unknown.values()),
    }
    _log.info("%s", figures)
    return figures


def test_workers_that_are_killed_and_stopped_finish_every_run_and_repeat_no_effect_unnoticed(
    runtime, fleet_of, raw, outside, troubles
):
    fleet = fleet_of()
    fleet.work_between = 10
    figures = soak(runtime, fleet, raw, outside, troubles, size=60)
    assert figures["kills that hit a run in starting or running"] >= 1
    assert figures["stops"] >= 1


@pytest.mark.exhaustive
@pytest.mark.timeout(900)
def test_a_thousand_runs_are_finished_by_workers_of_which_one_is_hit_each_second(
    runtime, fleet_of, raw, outside, troubles
):
    size, longer = (4, 3) if runtime.engine.url.dialect == "sqlite" else (8, 7)
    fleet = fleet_of(places=size * SLOTS - 2, longer=longer)  # whoever is hit most likely executes something
    fleet.size = size
    figures = soak(runtime, fleet, raw, outside, troubles, size=1_000)
    assert figures["kills that hit a run in starting or running"] >= 30
