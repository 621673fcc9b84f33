"""The checker of the invariants sees each kind of damage: without that, the kill matrix would prove nothing."""

import copy

import pytest

from runtime_persist.testing.faults import check_invariants
from tests.faults import acts
from tests.faults.domains import confirms, opens


@pytest.fixture(scope="module")
def life(sqlite_lab):
    """The rows of a thread with a run that was taken over and succeeded, and one that runs."""

    def prepare(stage):
        first = acts.own(stage)
        acts.commit(stage, acts.checkpoint(stage, first, None))
        acts.commit(stage, acts.task_writes(stage, first))
        begin = acts.begin(stage, first)
        acts.commit(stage, begin)
        acts.commit(stage, opens(stage, first))
        stage.expire(first.lease.run_id)
        acts.commit(stage, confirms(stage, first.lease.run_id))
        second = acts.take_over(stage, first.lease.run_id)
        acts.commit(stage, acts.start_try(stage, second, begin.operation_id, 2))
        acts.commit(stage, acts.complete(stage, second, begin.operation_id, 2))
        acts.finish(stage, second)
        acts.commit(stage, acts.start_owned(stage))

    with sqlite_lab.stage("life", prepare) as stage:
        return acts.rows(stage)


def test_a_life_without_damage_is_in_order(life):
    assert check_invariants(life) == []


def change(table, column, value, **where):
    def damage(rows):
        found = [row for row in rows[table] if all(row[name] == wanted for name, wanted in where.items())]
        assert found
        found[0][column] = value

    return damage


def remove(table, **where):
    def damage(rows):
        found = [row for row in rows[table] if all(row[name] == wanted for name, wanted in where.items())]
        assert found
        rows[table].remove(found[0])

    return damage


def double(table, **where):
    def damage(rows):
        found = [row for row in rows[table] if all(row[name] == wanted for name, wanted in where.items())]
        rows[table].append(dict(found[0]))

    return damage


def called(**changes):
    """A call that took a loop of the run that runs."""

    def damage(rows):
        (run,) = (row for row in rows["runs"] if row["status"] == "running")
        run |= {"loops_consumed": 1} | changes
        ticket = dict.fromkeys(("tool_calls", "tokens", "cost_micros"), 0)
        rows["tickets"].append(
            ticket | {"run_id": run["run_id"], "state": "consumed", "loops": 1, "invocation": "agent:1", "epoch": 1}
        )

    return damage


DAMAGE = {
    "an event is missing": remove("events", seq=3),
    "an event is there twice": double("events", seq=3),
    "an event stands in front of an earlier one": change("events", "position", 0, seq=3),
    "a run does not know the place of its last event": change("runs", "event_position", 0, status="running"),
    "the event counter ran ahead": change("runs", "event_seq", 99, status="running"),
    "an epoch without a claim": change("runs", "epoch", 3, status="running"),
    "a row of an epoch that never was": change("checkpoints", "epoch", 9),
    "an attempt is missing": remove("attempts", status="lost"),
    "the attempt counter ran ahead": change("runs", "attempt_no", 2, status="running"),
    "two attempts are open": change("attempts", "status", "claimed", status="lost"),
    "an attempt of a final run is open": change("attempts", "status", "running", status="succeeded"),
    "a running run without a running attempt": change("attempts", "status", "starting", status="running"),
    "a started attempt nobody told of": remove("events", type="attempt.start_requested"),
    "a final run has a lease": change("runs", "phase", "active", status="succeeded"),
    "a final run never finished": change("runs", "finished_us", None, status="succeeded"),
    "a retry is due of a run that runs": change("runs", "next_attempt_us", 7, status="running"),
    "a status without its event": change("runs", "status", "lost", status="running"),
    "the owner does not exist": change("threads", "owner_run_id", "nobody"),
    "the holder does not own its thread": change("threads", "owner_run_id", None),
    "the run counter ran ahead": change("threads", "run_no", 7),
    "an operation without a try": remove("operation_tries", try_no=2),
    "a try without an operation": remove("operations"),
    "a settled operation is pending": change("operations", "status", "pending"),
    "an earlier try is still started": change("operation_tries", "status", "started", try_no=1),
    "a try without its event": remove("events", type="operation.started"),
    "a try was completed twice": double("events", type="operation.completed"),
    "a domain that its run does not count": remove("domains"),
    "an open domain of a final run": change("domains", "state", "open"),
    "a revoked domain without a proof": change("domains", "proof", None),
    "a head without a checkpoint": remove("checkpoints"),
    "a checkpoint without a head": remove("heads"),
    "content is missing": remove("blobs"),
    "a ticket that its run does not count": called(loops_consumed=0),
    "a call beyond its run's limit": called(loops_limit=0),
    "a call beyond its invocation's limit": called(invocation_loops_limit=0),
    "a receipt of no command": change("receipts", "kind", "sing"),
}


def test_a_call_within_its_limits_is_no_damage(life):
    rows = copy.deepcopy({table: [dict(row) for row in found] for table, found in life.items()})
    called(loops_limit=1, invocation_loops_limit=1)(rows)
    assert check_invariants(rows) == []


@pytest.mark.parametrize("name", DAMAGE)
def test_damage_is_seen(life, name):
    rows = copy.deepcopy({table: [dict(row) for row in found] for table, found in life.items()})
    DAMAGE[name](rows)
    assert check_invariants(rows) != []
