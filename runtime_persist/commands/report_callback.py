"""report_callback: a runtime that holds no lease tells about its attempt, and proves by a token that it is that one."""

from __future__ import annotations

import hmac
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlalchemy import literal_column, select

from runtime_persist.commands.parts import content, domain_rows, evidence, failing, rolling_back, run_rows, taking
from runtime_persist.commands.parts.spec import (
    ColdCommand,
    Decision,
    Locked,
    RunChange,
    ThreadCommand,
    semantic_fingerprint,
)
from runtime_persist.dialects.sql import bind, constant
from runtime_persist.errors import CallbackRefused, InvariantBroken, ReportIgnored
from runtime_persist.model.evidence import ENDS, Observed
from runtime_persist.model.guards import CONTROL
from runtime_persist.model.states import FINAL_RUN, AttemptStatus, LeasePhase, RunStatus
from runtime_persist.plan import Plan, Query, Row, done, one_or_none
from runtime_persist.schema import events

if TYPE_CHECKING:
    from runtime_persist.model.payload import Blob

_LATE = "attempt.late_callback_ignored"

READ_LATE = Query(
    "read_late_callback",
    select(constant(1).label("one"))
    .where(
        events.c.space == bind(events.c.space),
        events.c.run_id == bind(events.c.run_id),
        events.c.attempt_id == bind(events.c.attempt_id),
        events.c.type == constant(_LATE),
    )
    .limit(literal_column("1")),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportCallback(ThreadCommand):
    """State what became of an attempt, by its token. Answer: ``accepted``, ``status`` of the run, ``last_sequence``.

    Attributes:
        run_id: the run.
        attempt_id: the attempt that the token is bound to.
        token_hash: keyed hash of the token.
        observed: ``accepted``, ``running``, or how it ended: ``succeeded``, ``failed``, ``cancelled``.
        sequence: the number of the report, as its runtime counts them.
        result: encoded payload reference, of a success.
        error_code: of a failure.
        error_summary: of a failure, without what must not be stored.
        repeatable: a further attempt could end differently.
        chance: between 0 and 1: where in the retry policy's jitter the wait lies.
        ttl_us: for how long a report extends the run's lease.
        callback_ttl_us: and the token.

    A run that was lost, and that nobody took over, is not lost any more. A report about an attempt that has ended, or
    whose run somebody took over, changes nothing; the first such one leaves an event, ``accepted`` is False. Refused: a
    wrong, expired or revoked token (CallbackRefused); a duplicate, or one that was overtaken
    (ReportIgnored); an end, while a domain that another attempt opened is not revoked (DomainsOpen).

    """

    run_id: str
    attempt_id: str
    token_hash: bytes
    observed: Observed
    sequence: int
    result: bytes | None = None
    error_code: str | None = None
    error_summary: str | None = None
    repeatable: bool = True
    chance: float = 0.5
    ttl_us: int = 0
    callback_ttl_us: int = 0
    owner: str = ""
    blobs: tuple[Blob, ...] = ()


def decide(command: ReportCallback, locked: Locked) -> Plan[Decision]:
    """Return the run as the report leaves it."""
    before, thread = locked.run, locked.thread
    if before is None or thread is None:
        raise InvariantBroken
    attempt = yield from one_or_none(run_rows.READ_ATTEMPT, space=command.space, attempt_id=command.attempt_id)
    attempt = _authentic(command, attempt, locked.now_us)
    late = _late(before, attempt)
    if late is not None:
        return (yield from _ignored(command, before, attempt, late, locked.now_us))
    evidence.check_sequence(attempt, command.sequence)
    run = taking.taken(before, attempt, locked.now_us)
    if before["status"] == RunStatus.LOST:
        run.tell("run.reconciled", observed=command.observed.value)
    evidence.see(run, command.observed, command.sequence)
    if command.observed in ENDS:
        yield from _end(run, thread, command)
    else:
        _extend(run, command)
    return Decision(
        {"accepted": True, "status": run.run["status"], "last_sequence": command.sequence},
        runs=[RunChange(before, run.run, run.events)],
        effects=[*run.effects, *content.store(command.space, command.owner, command.blobs)],
    )


def _authentic(command: ReportCallback, attempt: Row | None, now: int) -> Row:
    """Return the attempt, if the token is its own and still good (compared in constant time)."""
    known = b"" if attempt is None or attempt["run_id"] != command.run_id else attempt["callback_hash"] or b""
    if attempt is None or not known or not hmac.compare_digest(bytes(known), command.token_hash):
        msg = f"the callback token is not one of attempt {command.attempt_id}, or it was revoked"
        raise CallbackRefused(msg, attempt_id=command.attempt_id)
    if attempt["callback_expires_us"] <= now:
        msg = f"the callback token of attempt {command.attempt_id} has expired"
        raise CallbackRefused(msg, attempt_id=command.attempt_id)
    return attempt


def _late(run: Row, attempt: Row) -> str | None:
    """Return why nothing about the attempt counts any more (None: it does)."""
    if run["status"] in FINAL_RUN:
        return "run_ended"
    if run["attempt_id"] != attempt["attempt_id"] or run["epoch"] != attempt["epoch"]:
        return "taken_over"
    if attempt["ended_us"] is not None and attempt["status"] != AttemptStatus.LOST:
        return "attempt_ended"
    return None


def _ignored(command: ReportCallback, before: Row, attempt: Row, reason: str, now: int) -> Plan[Decision]:
    """Note once for each attempt that something came too late; of more nothing is written."""
    found = yield from one_or_none(READ_LATE, space=command.space, run_id=command.run_id, attempt_id=command.attempt_id)
    if found is not None:
        msg = f"a report about attempt {command.attempt_id} came too late ({reason}), not for the first time"
        raise ReportIgnored(msg, attempt_id=command.attempt_id, reason="late", status=before["status"])
    run = taking.taken(before, attempt, now)
    run.tell(_LATE, reason=reason, observed=command.observed.value, sequence=command.sequence)
    run.events[-1] = replace(run.events[-1], attempt_id=command.attempt_id)
    answer = {"accepted": False, "status": before["status"], "last_sequence": attempt["last_event_seq"]}
    return Decision(answer, runs=[RunChange(before, run.run, run.events)])


def _extend(run: taking.Taken, command: ReportCallback) -> None:
    """Keep the run and the token: who reports is there. A run that was lost is running again, under its old epoch."""
    if run.run["status"] == RunStatus.LOST and command.observed is Observed.RUNNING:
        run.move(RunStatus.RUNNING)
    if run.run["phase"] == LeasePhase.ACTIVE and run.run["status"] != RunStatus.LOST:
        run.run["expires_us"] = max(run.run["expires_us"], run.now + command.ttl_us)
    if run.attempt is not None and command.callback_ttl_us:
        until = max(run.attempt["callback_expires_us"], run.now + command.callback_ttl_us)
        run.attempt["callback_expires_us"] = until
        run.effects[-1] = run_rows.save_attempt(run.attempt)


def _end(run: taking.Taken, thread: Row, command: ReportCallback) -> Plan[None]:
    """End the attempt. What it opened ends with it: it is the attempt's own runtime that says so."""
    found = yield from domain_rows.still_open(run.run) if run.run["domains_open"] else done([])
    own = [domain["domain_id"] for domain in found if domain["attempt_id"] == command.attempt_id]
    yield from domain_rows.end_own(run, own, command.actor)
    said = {"error_code": command.error_code, "error_summary": command.error_summary}
    if command.observed is Observed.FAILED:
        yield from failing.fail(run, thread, said, repeatable=command.repeatable, chance=command.chance)
        return
    wanted = RunStatus.SUCCEEDED if command.observed is Observed.SUCCEEDED else RunStatus.CANCELLED
    run.conclude(thread, wanted, "reported", result=command.result)
    yield from rolling_back.roll_back(run)


SPEC = ColdCommand(
    name="report_callback",
    dto=ReportCallback,
    guard=CONTROL,
    decide=decide,
    statements=(
        run_rows.READ_ATTEMPT,
        READ_LATE,
        domain_rows.READ_OPEN_DOMAINS,
        domain_rows.READ_DOMAIN,
        *rolling_back.STATEMENTS,
        run_rows.SAVE_RUN,
        domain_rows.SAVE_DOMAIN,
        run_rows.SAVE_ATTEMPT,
        run_rows.SAVE_THREAD,
        content.STORE_BLOB,
    ),
    locks_thread=True,
    fingerprint=lambda command: semantic_fingerprint(replace(command, chance=0.0, ttl_us=0, callback_ttl_us=0)),
)
