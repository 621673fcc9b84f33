"""claim_run: a worker takes a run whose lease is free (queued) or ran out (takeover), under the next epoch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from runtime_persist.commands.parts import admission, claiming, taking
from runtime_persist.commands.parts.spec import ColdCommand, Decision, Locked, ThreadCommand
from runtime_persist.errors import InvariantBroken, NothingToClaim
from runtime_persist.model.guards import CLAIM
from runtime_persist.model.states import Control, RunStatus

if TYPE_CHECKING:
    from runtime_persist.plan import Plan, Row


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimRun(ThreadCommand):
    """Claim one run by name.

    Answer: ``epoch``, ``takeover``, ``attempt_id``, ``started`` (the start fence is written; never by this command),
    ``crash_loop``, ``domains_open`` (of older epochs, to be revoked before the lease is activated), ``control``,
    ``stop_reason``, ``deadline_in_us`` (microseconds; None: it has none).

    Attributes:
        versions: versions of the graph's definition that the worker may execute (None: all of them).
        instance_id: whose slot it takes (None: only for a run that is being stopped: ending it needs none).

    A run before its start fence keeps its attempt; one past it goes to ``lost`` with its attempt, and a new attempt
    is made when the lease is activated. Refused: nothing to claim (live, waiting, final, of another version, or
    an older open run of the thread comes first); the instance has no report that counts (CapacityUnknown); no slot of
    it, no place of the graph, or the scope is taken (CapacityReached).

    """

    run_id: str
    worker_id: str
    attempt_id: str
    ttl_us: int
    versions: tuple[str, ...] | None = None
    instance_id: str | None = None


def decide(command: ClaimRun, locked: Locked) -> Plan[Decision]:
    """Return the run under its next epoch."""
    before, thread, now = locked.run, locked.thread, locked.now_us
    if before is None or thread is None:
        raise InvariantBroken
    _check_claimable(before, now)
    _check_version(command, before)
    first = (yield from taking.open_runs(command.space, command.thread_id))[0]
    if first["run_id"] != command.run_id:
        msg = f"run {first['run_id']} of the same thread is open and older than {command.run_id}"
        raise NothingToClaim(msg, run_id=command.run_id, waits_for=first["run_id"])
    run = yield from claiming.about_to_take(before, now)
    report = claiming.report_of(command, locked.instance, run)
    if report is not None and command.instance_id is not None:
        yield from admission.take_slot(command.space, command.instance_id, report, command.run_id)
    yield from admission.take_places(before)
    return (yield from claiming.claimed(command, before, thread, run))


def _check_claimable(run: Row, now: int) -> None:
    claimable = {RunStatus.QUEUED, RunStatus.DISPATCHING, RunStatus.RUNNING, RunStatus.LOST}
    status = RunStatus(run["status"])
    due = status is RunStatus.RETRY_WAIT and run["next_attempt_us"] is not None and run["next_attempt_us"] <= now
    if not due and (status not in claimable or taking.is_live(run, now)):
        msg = f"run {run['run_id']} is {status.value} with a lease that is {run['phase']}"
        raise NothingToClaim(msg, run_id=run["run_id"], status=status.value)


def _check_version(command: ClaimRun, run: Row) -> None:
    known = command.versions is None or run["graph_version"] in {None, *command.versions}
    if not known and run["control"] == Control.OPEN:  # a stopping run is only ended: that needs no graph
        msg = f"run {run['run_id']} is of version {run['graph_version']} of {run['graph']}, which this worker has not"
        raise NothingToClaim(msg, run_id=run["run_id"], graph_version=run["graph_version"])


SPEC = ColdCommand(
    name="claim_run",
    dto=ClaimRun,
    guard=CLAIM,
    decide=decide,
    statements=(taking.OPEN_RUNS, admission.READ_HELD, *admission.PLACES, *claiming.STATEMENTS),
    locks_thread=True,
    locks_instance=True,
)
