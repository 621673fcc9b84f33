"""What counts as a proof, and what does not."""

import os
from dataclasses import replace

import pytest

from runtime_persist import Runtime
from runtime_persist.engine import directories, processes
from runtime_persist.engine.revokers import Revokers
from runtime_persist.errors import InvalidInput, WorkspaceBusy
from runtime_persist.model.domains import Domain, DomainState, Proof, Revoked, Unproved


def domain(kind, handle, domain_id="d"):
    return Domain(
        domain_id=domain_id,
        run_id="run",
        attempt_id="attempt",
        epoch=1,
        kind=kind,
        handle=handle,
        state=DomainState.OPEN,
        opened_us=1,
        receipt=None,
    )


class Says:
    def __init__(self, answer) -> None:
        self.answer = answer

    def revoke(self, domain):
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.fixture
def revokers():
    return Revokers()


@pytest.mark.parametrize("answer", [Unproved("it does not answer"), None, True, ConnectionError("the gateway is away")])
def test_whatever_is_no_proof_proves_nothing(revokers, answer):
    revokers.register("sandbox", Says(answer))
    assert isinstance(revokers.revoke(domain("sandbox", {})), Unproved)


def test_a_proof_is_handed_on(revokers):
    proof = Revoked(Proof.GONE, "the sandbox was destroyed")
    revokers.register("sandbox", Says(proof))
    assert revokers.revoke(domain("sandbox", {})) is proof


@pytest.mark.parametrize("kind", ["process", "workspace", "sandbox"])
@pytest.mark.parametrize("handle", [{}, {"pid": 1}, {"path": 7}])
def test_a_handle_that_says_nothing_proves_nothing(revokers, kind, handle):
    assert isinstance(revokers.revoke(domain(kind, handle)), Unproved)


def test_a_process_is_ended_by_identity_and_by_the_domains_id_as_its_mark(revokers, family):
    one = family("domain-7")
    handle = processes.identify(one.leader.pid).handle()
    assert revokers.revoke(domain("process", handle, "domain-7")).how is Proof.KILLED


def test_a_revoker_needs_a_kind_and_a_method():
    with Runtime.open("sqlite:///:memory:") as runtime:
        for kind, revoker in (("", Says(None)), ("sandbox", None), (7, Says(None))):
            with pytest.raises(InvalidInput):
                runtime.register_revoker(kind, revoker)


# --- directories -----------------------------------------------------------------------------------------------------


def in_directory(path, pid, **changed):
    identity = replace(processes.identify(pid), **changed)
    return domain("workspace", {**identity.handle(), "path": str(path)}, "workspace-7")


def test_a_directory_is_its_openers_while_the_lock_is_held(revokers, tmp_path):
    descriptor = directories.lock(tmp_path)
    opened = in_directory(tmp_path, os.getpid())
    assert "lock" in revokers.revoke(opened).why
    with pytest.raises(WorkspaceBusy):
        directories.lock(tmp_path)
    os.close(descriptor)
    assert revokers.revoke(opened).how is Proof.CLOSED
    assert list(tmp_path.iterdir()) == []


def test_what_was_started_in_a_directory_ends_with_whoever_opened_it(revokers, tmp_path, family):
    opener, program = family(), family("workspace-7")
    opened = in_directory(tmp_path, opener.leader.pid)
    opener.lose_leader()
    assert revokers.revoke(opened).how is Proof.KILLED
    assert processes.end_marked("workspace-7").how is Proof.GONE
    assert program.leader.wait() == -9


def test_a_lock_that_a_forked_child_still_holds_is_not_free(revokers, tmp_path, family):
    opener = family()
    opened = in_directory(tmp_path, opener.leader.pid)
    opener.lose_leader()
    descriptor = directories.lock(tmp_path)
    assert isinstance(revokers.revoke(opened), Unproved)
    os.close(descriptor)
    assert revokers.revoke(opened).how is Proof.GONE


@pytest.mark.parametrize("changed", [{"boot_id": "b", "machine_id": "m"}, {"namespaces": "pid:[1]"}])
def test_a_free_lock_proves_nothing_on_another_machine(revokers, tmp_path, changed):
    assert isinstance(revokers.revoke(in_directory(tmp_path, os.getpid(), **changed)), Unproved)


def test_a_directory_that_is_not_there_proves_nothing_while_its_opener_lives(revokers, tmp_path):
    """It may have been unmounted here only."""
    assert isinstance(revokers.revoke(in_directory(tmp_path / "away", os.getpid())), Unproved)


def test_no_directory_is_no_workspace(tmp_path):
    (tmp_path / "file").write_text("")
    for name in ("file", "missing"):
        with pytest.raises(InvalidInput):
            directories.lock(tmp_path / name)
