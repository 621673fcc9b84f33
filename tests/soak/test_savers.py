"""Plain savers in processes that are killed and stopped lose nothing that they acknowledged, and no update."""

from __future__ import annotations

import collections
import logging
import random
import threading
import time

import pytest

from runtime_persist.testing.faults import check_invariants, read_rows
from tests.soak import programs
from tests.soak.fleet import Fleet
from tests.support.checkpoints import TASK, at

_log = logging.getLogger("soak")
PROCESSES = 3
SAMPLE_SECONDS = 0.05


@pytest.fixture
def acked(tmp_path):
    return programs.Outside(tmp_path / "acknowledged")


@pytest.fixture
def fleet(shared_url, fork, raw, acked):
    """Three processes on the saver's database."""
    threads = [f"t{n}" for n in range(60)]
    return Fleet(
        lambda: fork(programs.saver_caller, shared_url, str(acked.path), threads), raw, random.Random(7), PROCESSES
    )


def work(fleet, acked, size):
    """Let them write, and hit them, until so much is acknowledged; return how many steps came too late."""
    fleet.fill()
    began = told_at = time.monotonic()
    while (done := len(acked.lines())) < size:
        fleet.wake()
        if fleet.is_due(done):
            fleet.strike()
        if time.monotonic() >= told_at + 5:
            told_at = time.monotonic()
            _log.info("%4.0f s  %5d acknowledged  %d kills  %d stops", told_at - began, done, fleet.kills, fleet.stops)
        threading.Event().wait(SAMPLE_SECONDS)
    ended = fleet.end()
    assert [outcome[0] for outcome in ended] == ["returned"] * PROCESSES, ended
    return sum(outcome[1] for outcome in ended)


def check_thread(saver, thread_id, puts, writes):
    """One line of checkpoints from the head back to the first, with everything that was acknowledged in it."""
    stored = {one.checkpoint["id"]: one for one in saver.list(at(thread_id))}
    parents = {
        name: one.parent_config and one.parent_config["configurable"]["checkpoint_id"] for name, one in stored.items()
    }
    assert {name: parents.get(name) for name in puts} == puts
    assert max(collections.Counter(parents.values()).values()) == 1  # nobody made a fork
    head = saver.get_tuple(at(thread_id))
    chain = []
    at_id = head.checkpoint["id"]
    while at_id is not None:
        chain.append(at_id)
        at_id = parents[at_id]
    assert sorted(chain) == sorted(stored)
    assert head.checkpoint["channel_values"]["log"] == [f"step {n}" for n in range(len(chain))]
    for name in writes:
        assert [write[0] for write in stored[name].pending_writes] == [TASK]


def check(saver, acked):
    puts = collections.defaultdict(dict)
    writes = collections.defaultdict(set)
    for kind, thread_id, checkpoint_id, more in acked.lines():
        if kind == "put":
            puts[thread_id][checkpoint_id] = None if more == "-" else more
        else:
            writes[thread_id].add(checkpoint_id)
    for thread_id, made in puts.items():
        check_thread(saver, thread_id, made, writes[thread_id])
    assert check_invariants(read_rows(saver.engine)) == []
    return sum(map(len, puts.values()))


def soak(saver, fleet, acked, size):
    refused = work(fleet, acked, size)
    found = check(saver, acked)
    _log.info("%d checkpoints, %d refused, %d kills, %d stops", found, refused, fleet.kills, fleet.stops)


@pytest.fixture
def shared_saver(runtime):
    return runtime.checkpointer


def test_what_killed_and_stopped_savers_acknowledged_is_there_and_each_thread_is_one_line(shared_saver, fleet, acked):
    fleet.work_between = 150
    soak(shared_saver, fleet, acked, size=1_000)
    assert fleet.kills >= 1
    assert fleet.stops >= 1


@pytest.mark.exhaustive
@pytest.mark.timeout(900)
def test_forty_thousand_steps_of_savers_of_which_one_is_hit_each_second_are_there(shared_saver, fleet, acked):
    soak(shared_saver, fleet, acked, size=40_000)
    assert fleet.kills >= 10
