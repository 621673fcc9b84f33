"""DB-08: nobody goes on with a run, or ends it, before what its older epochs can write to is proved revoked."""

import os
import signal

import pytest

from runtime_persist import Runtime
from runtime_persist.engine import domains, ownership, requests
from runtime_persist.engine import run as flow
from runtime_persist.errors import DomainsOpen, ThreadOwned
from runtime_persist.inspector import load_bundle
from runtime_persist.model.domains import DomainState, Proof, Revoked
from runtime_persist.testing.faults import check_invariants, read_rows
from tests.fixtures.raw import wait_until
from tests.support import programs_domains
from tests.support.children import alive, stop
from tests.support.graphs import chain, says
from tests.support.leases import run_out

GRAPHS = {"g": chain({"node": says("second"), "after": says("after")})}
ANOTHER_MACHINE = {"boot_id": "of another machine", "machine_id": "another", "host": "elsewhere"}


@pytest.fixture
def run(runtime):
    runtime.bind(GRAPHS["g"], name="g")
    return runtime.runs.start("g", {"log": []}, thread_id="t")


@pytest.fixture
def left(run, shared_url, fork, raw):
    """A run whose worker was killed while a process worked for it; that process's pid and domain."""
    pids = []

    def leaves(program=programs_domains.with_a_process, **options):
        child = fork(program, shared_url, **options)
        said = child.until("in node")
        pids.extend(one for one in said if isinstance(one, int))
        child.kill()
        run_out(raw)
        return said

    yield leaves
    for pid in filter(alive, pids):
        os.kill(pid, signal.SIGKILL)


def events(runtime):
    rows = read_rows(runtime.engine)
    assert check_invariants(rows) == []
    return [event["type"] for event in sorted(rows["events"], key=lambda event: event["seq"])]


def finished(runtime, run):
    assert run.result(timeout=0)["log"] == ["second", "after"]
    found = events(runtime)
    assert found.count("run.succeeded") == 1
    return found


def test_a_stopped_process_of_a_dead_worker_is_killed_and_proved_gone_before_the_run_goes_on(runtime, run, left, works):
    """A lease that ran out never proves that nothing writes: the process was only stopped."""
    pid, domain_id = left()
    stop(pid)
    assert [what for what, _ in works(GRAPHS)] == ["claimed", "finished"]
    assert not alive(pid)
    (domain,) = runtime.runs.domains(run.run_id)
    assert (domain.domain_id, domain.state, domain.epoch) == (domain_id, DomainState.REVOKED, 1)
    assert (domain.receipt.how, domain.receipt.epoch) == (Proof.KILLED, 2)
    assert domain.receipt.by == f"worker:{runtime.engine.worker_id}"
    found = finished(runtime, run)
    taken, active = (len(found) - 1 - found[::-1].index(kind) for kind in ("lease.claimed", "lease.activated"))
    assert taken < found.index("domain.revoked") < active


def test_a_process_that_ended_by_itself_is_proved_gone(runtime, run, left, works):
    pid, _ = left()
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not alive(pid), "it ended")
    works(GRAPHS)
    assert runtime.runs.domains(run.run_id)[0].receipt.how is Proof.GONE
    finished(runtime, run)


def test_a_process_of_another_machine_stays_unproved_until_a_person_says_so_and_nothing_starts(
    runtime, run, left, works, raw
):
    pid, domain_id = left(changed=ANOTHER_MACHINE)
    claimed, stopped = works(GRAPHS)
    assert (claimed[0], stopped[0], stopped[1]["code"]) == ("claimed", "blocked", "DOMAINS_OPEN")
    assert "another machine" in stopped[1]["error"]
    assert alive(pid)
    record = run.record()
    assert (record.status, record.shown, record.phase, record.takeovers) == ("lost", "unknown", "recovering", 0)
    assert works(GRAPHS) == []  # it is not claimed again while the lease of the blocked claim lasts
    bundle = flow(load_bundle(runtime.engine, runtime.checkpointer.serde, run.run_id))
    assert [one.domain_id for one in bundle.domains] == [domain_id]
    assert domain_id in {action.subject for action in bundle.recovery}
    said = runtime.runs.confirm_revoked(run.run_id, domain_id, by="ann", why="that machine was thrown away")
    assert (said.receipt.how, said.receipt.by) == (Proof.STATED, "user:ann")
    assert [what for what, _ in works(GRAPHS)] == ["claimed", "finished"]  # at once
    found = finished(runtime, run)
    assert found.count("run.takeover_blocked") == 1
    assert alive(pid)


def test_a_worker_that_could_not_prove_it_leaves_the_run_to_others_and_works_on(runtime, run, left, working, raw):
    """It comes back to it when it is not blocked any more."""
    (domain_id,) = left(programs_domains.unregistered)
    reports = working(GRAPHS, slots=2)
    wait_until(lambda: "blocked" in [what for what, _ in reports], "the takeover is blocked")
    run_out(raw)
    for thread_id in ("u", "v"):  # between the two it has looked for something else to claim
        assert runtime.runs.start("g", {"log": []}, thread_id=thread_id).result(timeout=30) is not None
    claims = [facts["run_id"] for what, facts in reports if what == "claimed"]
    assert claims.count(run.run_id) == 1
    runtime.runs.confirm_revoked(run.run_id, domain_id, by="ann")
    assert run.result(timeout=30)["log"] == ["second", "after"]


def test_another_worker_may_prove_what_one_could_not(runtime, run, left, works, raw):
    left(programs_domains.unregistered)
    assert [what for what, _ in works(GRAPHS)] == ["claimed", "blocked"]
    run_out(raw)

    class Gateway:
        def revoke(self, domain):
            return Revoked(Proof.KILLED, f"sandbox {domain.handle['name']} was destroyed")

    runtime.register_revoker("sandbox", Gateway())
    assert [what for what, _ in works(GRAPHS)] == ["claimed", "finished"]
    (domain,) = runtime.runs.domains(run.run_id)
    assert domain.receipt.saw == "sandbox box-7 was destroyed"
    assert domain.receipt.epoch == 3
    finished(runtime, run)


def test_a_blocked_run_holds_no_slot_of_whoever_claimed_it(runtime, run, left, works):
    left(programs_domains.unregistered)
    other = runtime.runs.start("g", {"log": []}, thread_id="another thread")
    reports = works(GRAPHS, slots=1)
    assert [what for what, _ in reports].count("blocked") == 1
    assert other.result(timeout=0)["log"] == ["second", "after"]


def test_a_cancelled_run_ends_only_when_its_process_is_proved_gone(runtime, run, left, works, raw):
    (domain_id,) = left(programs_domains.unregistered)
    assert run.cancel() == "lost"
    assert run.record().status == "lost"
    run_out(raw)
    assert [what for what, _ in works(GRAPHS)] == ["claimed", "blocked"]
    assert run.record().status == "lost"
    runtime.runs.confirm_revoked(run.run_id, domain_id, by="ann")
    works(GRAPHS)
    assert run.record().status == "cancelled"
    events(runtime)


def test_cancelling_a_left_run_ends_its_process_and_then_the_run(runtime, run, left):
    pid, _ = left()
    stop(pid)
    assert run.cancel() == "cancelled"
    assert not alive(pid)
    assert events(runtime)[-1] == "run.cancelled"


def test_a_deadline_runs_on_while_a_takeover_is_blocked(runtime, run, left, works, raw):
    (domain_id,) = left(programs_domains.unregistered)
    works(GRAPHS)
    raw.rows("UPDATE rp_runs SET deadline_us = 1")
    run_out(raw)
    works(GRAPHS, sweep_seconds=0.0)
    record = run.record()
    assert (record.status, record.control, record.stop_reason) == ("lost", "stopping", "deadline")
    runtime.runs.confirm_revoked(run.run_id, domain_id, by="ann")
    works(GRAPHS)
    assert run.record().status == "timed_out"


# --- owned calls -----------------------------------------------------------------------------------------------------


@pytest.fixture
def owned_left(shared_url, opened, runtime, raw):
    """A thread whose owned run was left with a domain of this kind; its graph."""

    def leaves(kind, handle):
        gone = opened(Runtime.open(shared_url))
        gone.bind(GRAPHS["g"], name="g")
        serde = gone.checkpointer.serde
        asked = requests.request(gone.engine, serde, "g", {"log": []}, thread_id="t")
        owned = flow(ownership.start(gone.engine, serde, asked, "t"))
        gone.engine.heartbeats.remove(owned)
        domain_id = flow(domains.open_domain(owned, kind, handle))
        run_out(raw)
        return runtime.bind(GRAPHS["g"], name="g"), owned.lease.run_id, domain_id

    return leaves


CONFIG = {"configurable": {"thread_id": "t"}}


async def test_an_owned_call_goes_on_when_the_domains_are_revoked(owned_left, runtime, family, way):
    one = family()
    stop(one.leader.pid)
    graph, run_id, _ = owned_left("process", programs_domains.handle_of(one.leader.pid))
    assert (await way(graph, "invoke", None, CONFIG))["log"] == ["second", "after"]
    assert not alive(one.leader.pid)
    assert runtime.runs.get(run_id).status == "succeeded"


async def test_an_owned_call_is_refused_while_nothing_proves_them_revoked(owned_left, runtime, way):
    graph, run_id, domain_id = owned_left("sandbox", {"name": "box-7"})
    for given in (None, {"log": []}):  # going on, and starting anew
        with pytest.raises(DomainsOpen, match="sandbox"):
            await way(graph, "invoke", given, CONFIG)
    assert runtime.runs.get(run_id).status == "running"
    runtime.runs.confirm_revoked(run_id, domain_id, by="ann")
    assert (await way(graph, "invoke", {"log": ["anew"]}, CONFIG))["log"] == ["anew", "second", "after"]
    assert runtime.runs.get(run_id).status == "cancelled"


def test_a_live_run_is_not_revoked_by_somebody_elses_call(owned_left, runtime, raw, family):
    one = family()
    graph, _, _ = owned_left("process", programs_domains.handle_of(one.leader.pid))
    raw.rows("UPDATE rp_runs SET expires_us = 9000000000000000")
    with pytest.raises(ThreadOwned):
        graph.invoke(None, CONFIG)
    assert alive(one.leader.pid)
