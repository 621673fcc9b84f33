"""Ending a process for good: all of it, nothing else, and with a proof."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from runtime_persist.engine import processes
from runtime_persist.engine.processes import Life
from runtime_persist.model.domains import Proof, Revoked, Unproved
from tests.fixtures.raw import wait_until
from tests.support.children import alive, stop


@pytest.fixture
def one(family):
    return family()


def test_a_stopped_process_is_killed_with_its_group_and_proved_gone(one):
    identity = processes.identify(one.leader.pid)
    for pid in (one.leader.pid, one.member):
        stop(pid)
    answer = processes.end(identity)
    assert isinstance(answer, Revoked)
    assert answer.how is Proof.KILLED
    assert not alive(one.leader.pid)
    assert not alive(one.member)
    assert processes.look(identity).life is Life.GONE
    assert processes.end(identity).how is Proof.GONE
    assert alive(one.runaway)  # it left the group, and has no mark


def test_what_left_the_group_is_found_by_its_mark(family):
    one = family("the mark")
    answer = processes.end(processes.identify(one.leader.pid), mark="the mark")
    assert answer.how is Proof.KILLED
    assert not any(map(alive, one.pids))


def test_a_mark_among_others_counts_and_a_part_of_it_does_not(family, monkeypatch):
    monkeypatch.setenv(processes.MARK, "outer")
    one = family(processes.marked("inner")[processes.MARK])
    assert processes.end_marked("inn").how is Proof.GONE
    assert all(map(alive, one.pids))
    assert processes.end_marked("outer").how is Proof.KILLED
    assert not any(map(alive, one.pids))


def test_what_a_dead_leader_left_is_ended_by_its_mark(family):
    one = family("the mark")
    identity = processes.identify(one.leader.pid)
    one.lose_leader()
    answer = processes.end(identity, mark="the mark")
    assert answer.how is Proof.KILLED
    assert not any(map(alive, one.pids))


def test_what_is_in_the_group_of_a_dead_leader_without_a_mark_is_never_signalled_and_nothing_is_proved(family):
    """The group's number may be somebody else's by now."""
    one = family("the mark", clean=True)
    identity = processes.identify(one.leader.pid)
    one.lose_leader()
    answer = processes.end(identity, mark="the mark")
    assert isinstance(answer, Unproved)
    assert str(one.member) in answer.why
    assert alive(one.member)
    assert not alive(one.runaway)


def test_a_leader_that_is_only_a_zombie_still_guards_its_groups_number(one):
    identity = processes.identify(one.leader.pid)
    os.kill(one.leader.pid, 9)
    os.waitid(os.P_PID, one.leader.pid, os.WEXITED | os.WNOWAIT)  # it is dead, and not reaped
    assert processes.look(identity).life is Life.GONE
    assert processes.end(identity).how is Proof.KILLED
    assert not alive(one.member)


def test_a_recycled_pid_is_gone_and_never_signalled(one):
    """Another process has its number: other start ticks, in whatever group."""
    identity = processes.identify(one.leader.pid)
    earlier = replace(identity, start_ticks=identity.start_ticks - 1)
    assert processes.look(earlier).life is Life.GONE
    answer = processes.end(earlier, mark="m")
    assert isinstance(answer, Unproved)  # the group of that number is not its own, and not empty
    assert processes.end(replace(earlier, group=2**22 - 1), mark="m").how is Proof.GONE
    assert all(map(alive, one.pids))


def test_whoever_got_the_number_between_the_look_and_the_signal_is_not_signalled(one):
    ticks = processes.identify(one.member).start_ticks
    assert not processes._kill(one.member, ticks - 1)
    assert alive(one.member)
    assert processes._kill(one.member, ticks)
    wait_until(lambda: not alive(one.member), "it ended")


def test_a_process_in_the_group_of_who_started_it_is_ended_alone(family):
    one = family()
    identity = processes.identify(one.member)
    assert identity.group == one.leader.pid
    assert processes.end(identity).how is Proof.KILLED
    assert not alive(one.member)
    assert alive(one.leader.pid)


@pytest.mark.parametrize(
    "other", [{"boot_id": "another boot", "machine_id": "another"}, {"namespaces": "pid:[1]"}, {"boot_id": ""}]
)
def test_from_elsewhere_nothing_is_proved_and_nothing_signalled(one, other):
    identity = replace(processes.identify(one.leader.pid), **other)
    assert processes.look(identity).life is Life.UNKNOWN
    assert isinstance(processes.end(identity), Unproved)
    assert all(map(alive, one.pids))


def test_another_boot_of_this_machine_is_proof_enough(one):
    """Whoever has the number now is somebody else."""
    identity = replace(processes.identify(one.leader.pid), boot_id="an earlier boot")
    assert processes.end(identity).how is Proof.REBOOTED
    assert all(map(alive, one.pids))


def test_this_process_does_not_end_itself():
    assert isinstance(processes.end(processes.identify(os.getpid())), Unproved)


def test_a_platform_without_proc_gives_an_identity_that_proves_nothing(one, monkeypatch):
    monkeypatch.setattr(processes, "_PROC", Path("/nonexistent"))
    identity = processes.identify(one.leader.pid)
    assert identity.boot_id == ""
    assert isinstance(processes.end(identity), Unproved)


def test_what_does_not_exist_has_no_identity(one):
    os.kill(one.member, 9)
    one.lose_leader()
    with pytest.raises(ProcessLookupError):
        processes.identify(one.leader.pid)
