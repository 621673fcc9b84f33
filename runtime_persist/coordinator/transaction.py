"""THE TRANSACTION PATH. Every write goes through here: guard, expectations, receipt, effect, events.

A hot command is one bundle whose fragments stand in that order; a cold command is a transaction of several
statements in that order. Nothing that can refuse stands after the receipt. On any refusal the receipt is looked up
in a new statement before the refusal is reported: the command may have been committed by an earlier try.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from runtime_persist.commands.parts import events, guards, receipts, run_rows
from runtime_persist.commands.parts.spec import (
    ColdCommand,
    Command,
    Event,
    HotCommand,
    Receipt,
    RunChange,
    semantic_fingerprint,
)
from runtime_persist.errors import CommandMismatch, InvariantBroken, RuntimePersistError, StoreBusy
from runtime_persist.plan import Bundle, BundleCall, Call, Plan, Row, Together, together

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True, slots=True)
class CommitReceipt:
    """That a command is committed.

    Attributes:
        command_id: of the command.
        kind: its name.
        result: what it answered.
        replayed: it was committed before; nothing was written now.
        told: run and type of each event that a cold command appended.
        changes: of each run that was written: its status before (None: a new run, or not of interest), its new events.
        rows: of each run that a cold command wrote, as it was saved (none: replayed).

    """

    command_id: str
    kind: str
    result: Mapping[str, Any]
    replayed: bool = False
    told: Sequence[tuple[str, str]] = field(default=(), repr=False, compare=False)
    changes: Sequence[tuple[str | None, Sequence[Event]]] = field(default=(), repr=False, compare=False)
    rows: Sequence[Row] = field(default=(), repr=False, compare=False)


@cache
def bundle_of(spec: HotCommand[Any]) -> Bundle:
    """Return a hot command's bundle: guard, expectations, receipt, effects with their events."""
    guard = guards.fragments(spec.guard, of_thread=hasattr(spec.dto, "thread_id"), more=spec.run_columns)
    return Bundle(spec.name, (*guard, *spec.expectations, spec.receipt, *spec.effects))


@cache
def told_by(spec: HotCommand[Any]) -> tuple[tuple[None, tuple[Event, ...]], ...]:
    """Return what a hot command changes of its run, when it appends an event."""
    told = tuple(Event(fragment.tells) for fragment in spec.effects if fragment.tells is not None)
    return ((None, told),) if told else ()


def commit_hot(spec: HotCommand[Any], command: Command) -> Plan[CommitReceipt]:
    """Commit a hot command; a statement that only lost a race against its own snapshot is sent once more."""
    step = BundleCall(bundle_of(spec), *spec.params(command))
    for _ in range(2):
        outcome = yield step
        accepted = spec.accepted(outcome) if spec.accepted else outcome.counts[spec.receipt.name] == 1
        if accepted:
            return CommitReceipt(command.command_id, spec.name, spec.answer(command, outcome), changes=told_by(spec))
        stored = yield from spec.lookup(command)
        try:
            refusal = guards.explain(spec.guard, command, outcome)
            if stored is not None:
                conflict = refusal or (spec.conflict(command) if spec.conflict else None)
                return replayed(spec.name, command, stored, spec.fingerprint(command), conflict)
            raise refusal or spec.refuse(command, outcome)
        except guards.Raced:
            continue
    msg = f"{spec.name} raced twice against rows that appeared while it waited; send it again"
    raise StoreBusy(msg, command_id=command.command_id)


def commit_cold(spec: ColdCommand[Any], command: Command) -> Plan[CommitReceipt]:
    """Commit a cold command."""
    fingerprint = spec.fingerprint(command) if spec.fingerprint else semantic_fingerprint(command)
    locked = yield from guards.lock(spec, command)
    try:
        refusal = guards.check(spec, command, locked)
        if refusal is not None:
            raise refusal
        decision = yield from spec.decide(command, locked)
    except RuntimePersistError:
        stored = yield from receipts.find(command)  # what it did itself may be why it is refused now
        if stored is None:
            raise
        return replayed(spec.name, command, stored, fingerprint, None)
    saved = [(*run_rows.save(change), change.events) for change in decision.runs]
    receipt = receipts.write(command, spec.name, fingerprint, decision.result, locked.now_us)
    calls = [receipt, *(save for _, save, _ in saved), *decision.effects]
    first = together(calls)
    written = yield Together(tuple(calls[:first]))
    if written is None:  # the command was committed before, and could be decided on once more
        stored = yield from receipts.find(command)
        if stored is None:
            raise InvariantBroken
        return replayed(spec.name, command, stored, fingerprint, None)
    for call, count in zip(calls, written, strict=False):
        check_set(call, count)
    for call in calls[first:]:
        check_set(call, (yield call))
    yield from events.append(command, [(row, told) for row, _, told in saved], locked.now_us)
    changes = tuple((before_of(change), change.events) for change in decision.runs)
    told = tuple((change.after["run_id"], event.type) for change in decision.runs for event in change.events)
    rows = tuple(row for row, _, _ in saved)
    return CommitReceipt(command.command_id, spec.name, decision.result, changes=changes, told=told, rows=rows)


def before_of(change: RunChange) -> str | None:
    """Return the status that a change takes a run from (None: the run is new)."""
    return None if change.before is None else str(change.before["status"])


def replayed(
    kind: str,
    command: Command,
    stored: Receipt,
    fingerprint: bytes,
    refusal: RuntimePersistError | None,
) -> CommitReceipt:
    """Answer with the stored receipt, unless it is of another request (then the refusal, if any, is the reason)."""
    if stored.fingerprint == fingerprint:
        return CommitReceipt(command.command_id, kind, stored.result, replayed=True)
    if refusal is not None:
        raise refusal
    msg = f"{kind}: command id {command.command_id} was already used for another request"
    raise CommandMismatch(msg, command_id=command.command_id, stored=dict(stored.result))


def check_set(effect: Call, changed: Any) -> None:
    """Abort when a compare-and-set behind the receipt missed: its row was locked, so that is a bug, not a race."""
    if effect.query is run_rows.SAVE_RUN and not changed:
        msg = f"run {effect.params['run_id']} is not at version {effect.params['expected_version']} under its own lock"
        raise InvariantBroken(msg, run_id=effect.params["run_id"])
