"""What recovery would do with a run, and having it done as far as that needs no graph."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from runtime_persist.commands.parts import taking
from runtime_persist.commands.report_instance import ReportInstance
from runtime_persist.commands.request_stop import RequestStop
from runtime_persist.engine import Engine, Flow, arun, domains, ownership, run, settling
from runtime_persist.errors import InvalidInput, NothingToClaim, RecoveryPlanChanged, RunNotFound, RuntimePersistError
from runtime_persist.model import limits
from runtime_persist.model.ids import new_id
from runtime_persist.model.states import ACTIVE_RUN, Control, RunStatus
from runtime_persist.queries import events as event_queries
from runtime_persist.queries import recovery as queries
from runtime_persist.queries import runs as run_queries
from runtime_persist.recovery import Act, Found, RecoveryPlan, plan_of
from runtime_persist.recovery.runs import steps
from runtime_persist.recovery.table import RULES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from langgraph.checkpoint.serde.base import SerializerProtocol

    from runtime_persist.engine import OwnedRun
    from runtime_persist.plan import Plan, Row

_CLAIMED = frozenset({Act.CLAIM, Act.TAKE_OVER, Act.ASK_RUNTIME, Act.GIVE_UP})
_EVENTS_NAMED = 5
_CRASH_LOOP = "crash_loop"


@dataclass(frozen=True, slots=True)
class Recovered:
    """What came of a recovery.

    Attributes:
        run_id: the run.
        status: its status behind it.
        epoch: its epoch behind it: every older one is refused.
        did: what was done, in order: ``claimed``, ``revoked``, ``ended``, ``given_up``, ``queued`` (a worker goes on
            with it), ``executed`` (its graph ran here); nothing when the plan says that nothing is to be done.

    """

    run_id: str
    status: str
    epoch: int
    did: tuple[str, ...]


class Recovery:
    """Part of :class:`runtime_persist.runtime.runs.Runs`."""

    _engine: Engine
    _serde: SerializerProtocol

    def recovery_plan(self, run_id: str) -> RecoveryPlan:
        """Return what recovery would do with a run now, and the hash of that; nothing is changed.

        Raises:
            RunNotFound: there is no such run.

        """
        return run(read_plan(self._engine, run_id))

    async def arecovery_plan(self, run_id: str) -> RecoveryPlan:
        """Do :meth:`recovery_plan` from an event loop."""
        return await arun(read_plan(self._engine, run_id))

    def recover(self, run_id: str, *, plan: str | RecoveryPlan) -> Recovered:
        """Do what a plan says, as far as it needs no graph: the run ends here, or any worker goes on with it.

        A run that was left is claimed under the next epoch, what older attempts opened is revoked, and it is handed to
        workers, which take it at once. To execute its graph here: :func:`runtime_persist.worker.recover`.

        Args:
            run_id: the run.
            plan: of :meth:`recovery_plan`, or its hash.

        Raises:
            RecoveryPlanChanged: something is not as the plan saw it; the error names what.
            DomainsOpen: nothing proves that an older attempt can no longer write; nothing was started.
            InvalidInput: ``plan`` is no hash of a plan.
            RunNotFound: there is no such run.

        """
        return run(recover(self._engine, self._serde, run_id, plan))

    async def arecover(self, run_id: str, *, plan: str | RecoveryPlan) -> Recovered:
        """Do :meth:`recover` from an event loop."""
        return await arun(recover(self._engine, self._serde, run_id, plan))


# --- looking --------------------------------------------------------------------------------------------------------


def read_plan(engine: Engine, run_id: str) -> Flow[RecoveryPlan]:
    """Read what is open of a run in one snapshot, and return what recovery would do (raises RunNotFound)."""
    found: Found | None = yield engine.coordinator.read(
        "read_recovery_plan", lambda: found_of(engine.space, run_id), snapshot=True
    )
    if found is None:
        msg = f"there is no run {run_id!r} in space {engine.space!r}"
        raise RunNotFound(msg, run_id=run_id)
    return plan_of(found)


def found_of(space: str, run_id: str) -> Plan[Found | None]:
    """Read what of a run is open (None: there is no such run)."""
    rows = yield from queries.open_rows(space, run_id)
    if rows is None:
        return None
    progressed = yield from taking.progressed({"space": space, **rows.run})
    return Found(progressed=progressed, **{name: getattr(rows, name) for name in rows.__slots__})


def checked_plan(engine: Engine, run_id: str, plan: str | RecoveryPlan) -> Flow[RecoveryPlan]:
    """Return the plan of a run as it is now, which is the given one.

    Raises:
        RecoveryPlanChanged: it is not.
        InvalidInput: it is no hash of a plan.
        RunNotFound: there is no such run.

    """
    known = plan.hash if isinstance(plan, RecoveryPlan) else plan
    now = yield from read_plan(engine, run_id)
    changed = now.changed_from(known)
    if changed is None:
        msg = f"{known!r:.100} is no hash of a plan; it is printed by: runtime-persist recover plan {run_id}"
        raise InvalidInput(msg)
    if changed:
        raise (yield from _changed(engine, now, known, changed))
    return now


def _changed(engine: Engine, now: RecoveryPlan, known: str, parts: list[str]) -> Flow[RecoveryPlanChanged]:
    """Say what is not as the plan saw it, and what was committed since."""
    seq = min(int(known.partition("-")[0]), now.event_seq)
    rows = yield engine.coordinator.read(
        "read_events_since", lambda: event_queries.of_run(engine.space, now.run_id, seq, _EVENTS_NAMED)
    )
    since = [f"{row['type']} ({row['seq']})" for row in rows]
    stands = {
        part: [f"{item.name or item.subject}: {item.situation}" for item in now.items if item.kind in _KINDS[part]]
        for part in parts
    }
    said = "; ".join(f"its {part} ({', '.join(found) or 'none is open'})" for part, found in stands.items())
    events = f"Committed since: {', '.join(since)}" if since else "No event was committed since: time or a write did"
    msg = (
        f"run {now.run_id} is not as the plan saw it, so it was left as it is. Changed: {said}. {events}. Look again: "
        f"runtime-persist recover plan {now.run_id}"
    )
    return RecoveryPlanChanged(msg, run_id=now.run_id, changed=parts, events=since, plan=now.hash)


_KINDS = {"run": {"run"}, "domains": {"domain"}, "tasks": {"task"}, "calls": {"call", "ticket"}}


# --- doing ----------------------------------------------------------------------------------------------------------


def recover(engine: Engine, serde: SerializerProtocol, run_id: str, plan: str | RecoveryPlan) -> Flow[Recovered]:
    """Do what a plan says, without a graph; see :meth:`Recovery.recover`."""
    now = yield from checked_plan(engine, run_id, plan)
    act = Act(now.run.act)
    if act is Act.END:
        return (yield from _end(engine, serde, now))
    row = yield from _row(engine, run_id)
    if act not in _CLAIMED or RunStatus(row["status"]) not in ACTIVE_RUN or act is Act.CLAIM:
        return (yield from outcome(engine, run_id))  # nothing is to be done, or workers may claim it as it is
    instance_id = yield from _report(engine, slots=1)
    try:
        owned, taken = yield from claim(engine, serde, now, instance_id)
        return (yield from _handed_over(engine, owned, taken))
    finally:
        yield from _report(engine, instance_id, slots=1, gone=True)


def claim(
    engine: Engine,
    serde: SerializerProtocol,
    plan: RecoveryPlan,
    instance_id: str | None,
    versions: tuple[str, ...] | None = None,
) -> Flow[tuple[OwnedRun, Mapping[str, Any]]]:
    """Claim a run as its plan says: from here every older epoch is refused.

    What could change between the look and the claim is compared again under the claim; if something did, it is given
    back.

    Raises:
        RecoveryPlanChanged: something changed, or somebody else has claimed it.
        NothingToClaim, CapacityReached, CapacityUnknown: as the claim says; nothing was done.

    """
    row = yield from _row(engine, plan.run_id)
    try:
        owned, taken = yield from ownership.claim(engine, serde, row, versions, instance_id)
    except NothingToClaim:
        yield from checked_plan(engine, plan.run_id, plan)  # says what changed, if that is why
        raise
    as_planned = taken["epoch"] == int(plan.run.evidence["epoch"] or 0) + 1 and _leads_to(taken, Act(plan.run.act))
    if as_planned and (yield from _is_unchanged(engine, plan, row)):
        return owned, taken
    yield from settling.give_back(engine, owned)
    raise (yield from _changed(engine, (yield from read_plan(engine, plan.run_id)), plan.hash, ["run"]))


def _leads_to(taken: Mapping[str, Any], act: Act) -> bool:
    last = steps(taken)[-1]
    return last is (Act.TAKE_OVER if act is Act.ASK_RUNTIME else act)


def _is_unchanged(engine: Engine, plan: RecoveryPlan, before: Row) -> Flow[bool]:
    """Return whether all but the run itself, which is claimed now, is as it was."""
    found: Found | None = yield engine.coordinator.read(
        "read_recovery_plan", lambda: found_of(engine.space, plan.run_id), snapshot=True
    )
    if found is None:
        return False
    as_before = plan_of(replace(found, run=before), RULES[plan.run.rule])
    theirs, ours = plan.shares(), as_before.shares()
    rests_on = plan.run.evidence.get("checkpoint") == as_before.run.evidence.get("checkpoint")
    return rests_on and all(ours[part] == share for part, share in theirs.items() if part != "run")


def _handed_over(engine: Engine, owned: OwnedRun, taken: Mapping[str, Any]) -> Flow[Recovered]:
    """Do the steps that need no graph; whoever asks the runtime of an attempt is a worker."""
    did = ["claimed"]
    try:
        for act in steps(taken):
            if act is Act.REVOKE:
                yield from domains.recover(engine, owned)
                did.append("revoked")
            elif act is Act.GIVE_UP:
                text = "its workers crashed too often in a row without a new checkpoint or operation"
                yield from settling.fail(engine, owned, _CRASH_LOOP, text)
                return (yield from outcome(engine, owned.lease.run_id, *did, "given_up"))
    except RuntimePersistError as error:
        raise owned.fail(error) from error
    yield from settling.give_back(engine, owned)
    return (yield from outcome(engine, owned.lease.run_id, *did, "queued"))


def _end(engine: Engine, serde: SerializerProtocol, plan: RecoveryPlan) -> Flow[Recovered]:
    """End a run that nobody holds: at once when nothing of it runs, else behind a claim and the proof of that."""
    row = yield from _row(engine, plan.run_id)
    if RunStatus(row["status"]) not in ACTIVE_RUN or row["control"] == Control.OPEN:
        reason = str(plan.run.evidence["stop_reason"])
        yield engine.coordinator.commit(
            RequestStop(space=engine.space, command_id=new_id(), actor="user", run_id=plan.run_id, reason=reason)
        )
        row = yield from _row(engine, plan.run_id)
    if RunStatus(row["status"]) not in ACTIVE_RUN:
        return (yield from outcome(engine, plan.run_id, "ended"))
    owned, taken = yield from claim(engine, serde, plan, None)
    did = ["claimed"]
    if taken["domains_open"]:
        yield from domains.recover(engine, owned)
        did.append("revoked")
    yield from settling.cancel(engine, owned, taken["stop_reason"] or "stop")
    return (yield from outcome(engine, plan.run_id, *did, "ended"))


def _report(engine: Engine, instance_id: str | None = None, *, slots: int, gone: bool = False) -> Flow[str]:
    """Report an instance for one claim (a claim takes a slot), or that it is gone."""
    made = instance_id or new_id()
    yield engine.coordinator.commit(
        ReportInstance(
            space=engine.space,
            command_id=new_id(),
            actor=f"worker:{engine.worker_id}",
            instance_id=made,
            worker_id=engine.worker_id,
            report_no=2 if gone else 1,
            slots=slots,
            active_task_ids=(),
            draining=gone,
            graphs={},
            ttl_us=0 if gone else round(limits.INSTANCE_TTL_SECONDS * 1_000_000),
        )
    )
    return made


def outcome(engine: Engine, run_id: str, *did: str) -> Flow[Recovered]:
    """Return what came of it."""
    row = yield from _row(engine, run_id)
    return Recovered(run_id, row["status"], row["epoch"], did)


def as_json(found: Recovered) -> dict[str, Any]:
    """Return it as a JSON object."""
    return asdict(found)


def _row(engine: Engine, run_id: str) -> Flow[Row]:
    row: Row | None = yield engine.coordinator.read("read_run", lambda: run_queries.run(engine.space, run_id))
    if row is None:
        msg = f"there is no run {run_id!r} in space {engine.space!r}"
        raise RunNotFound(msg, run_id=run_id)
    return row
