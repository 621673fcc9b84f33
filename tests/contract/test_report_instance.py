import pytest

from runtime_persist.errors import CommandMismatch, IllegalTransition, InvalidInput
from runtime_persist.model import limits
from tests.fixtures.contracts import Replay, changed


def stored(world):
    return world.raw.one("SELECT * FROM rp_instances")


class TestReplay(Replay):
    mismatch = CommandMismatch

    def make(self, world):
        return world.report()

    def other(self, world, command):
        return changed(command, slots=7)


def test_a_report_counts_from_the_databases_now_for_as_long_as_it_says(world):
    expires = world.commit(world.report(slots=4, active_task_ids=("r:1", "mine"), queued=2, host="h")).result
    row = stored(world)
    assert expires == {"expires_us": row["expires_us"]}
    assert row["expires_us"] - row["reported_us"] in range(30_000_000, 30_100_000)
    assert (row["slots"], row["active_task_ids"], row["queued"], row["draining"]) == (4, '["r:1","mine"]', 2, 0)


def test_the_next_report_replaces_it(world):
    world.commit(world.report())
    world.commit(world.report(report_no=2, slots=1, draining=True, ttl_us=0))
    row = stored(world)
    assert (row["report_no"], row["slots"], row["draining"]) == (2, 1, 1)
    assert row["expires_us"] <= row["reported_us"] + 100_000


def test_a_report_that_arrives_late_changes_nothing(world):
    world.commit(world.report(report_no=2))
    world.refused(world.report(report_no=1, slots=9), IllegalTransition)


def test_nobody_reports_for_another_workers_instance(world):
    world.commit(world.report())
    world.refused(world.report(report_no=2, worker_id="somebody else"), IllegalTransition)


@pytest.mark.parametrize("ids", [("a", "a"), ("",), ("a", 1), "abc", (None,)])
def test_task_ids_are_unique_and_not_empty(world, ids):
    world.refused(world.report(active_task_ids=ids), InvalidInput)


@pytest.mark.parametrize("slots", [0, -1, True, 1.5, "2", limits.SLOTS_MAX + 1])
def test_an_instance_has_slots(world, slots):
    world.refused(world.report(slots=slots), InvalidInput)


def test_instances_that_reported_long_ago_are_forgotten(world):
    for name in ("old", "recent", "live"):
        world.commit(world.report(name))
    hours = limits.INSTANCES_KEPT_HOURS * 3_600_000_000
    world.raw.rows("UPDATE rp_instances SET expires_us = reported_us - ? WHERE instance_id = 'old'", int(hours * 1.01))
    world.raw.rows("UPDATE rp_instances SET expires_us = reported_us - ? WHERE instance_id = 'recent'", int(hours / 2))
    world.commit(world.report("live", report_no=2))
    names = {row["instance_id"] for row in world.raw.rows("SELECT instance_id FROM rp_instances")}
    assert names == {"recent", "live"}
