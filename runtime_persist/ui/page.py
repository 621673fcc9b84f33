"""What the page of one run shows, of a database or of a bundle's file: everything read, nothing made pretty yet."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from runtime_persist.model.budgets import KINDS, money
from runtime_persist.model.questions import QuestionKind
from runtime_persist.ui.changes import shortened
from runtime_persist.ui.timeline import Timeline, timeline

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from runtime_persist.inspector.bundle import BundleView, OperationView, TryView
    from runtime_persist.inspector.bundles import RecoveryBundle
    from runtime_persist.inspector.thread import ThreadView
    from runtime_persist.inspector.tickets import Ledger, Level, TicketRow
    from runtime_persist.inspector.why import Why
    from runtime_persist.model.questions import Question
    from runtime_persist.recovery import RecoveryPlan
    from runtime_persist.ui.changes import Change

ROWS_MAX: Final = 100
"""Operations, checkpoints and events of the page of a run; older ones are a page further."""

_AMOUNTS: Final = {"loops": "loops", "tool_calls": "tool calls", "tokens": "tokens", "cost_micros": "cost"}


@dataclass(frozen=True, slots=True)
class Amount:
    """One kind of a budget: what of its limit is consumed and reserved, as people read it, and as shares of 1,000."""

    kind: str
    name: str
    limit: str
    consumed: str
    reserved: str
    consumed_share: int
    reserved_share: int
    invocation: str | None


@dataclass(frozen=True, slots=True)
class Write:
    """A pending write: what a task stored before its step was done, or what it asks."""

    checkpoint_ns: str
    task_id: str
    channel: str
    type: str
    bytes: int


@dataclass(frozen=True, slots=True)
class RunPage:
    """Everything that the page of a run shows.

    Attributes:
        view: the run and what it did.
        why: what explains its state.
        plan: what recovery would do.
        ledger: its budget, and what its calls take of it.
        thread: its thread by size, as it stood at the run's last checkpoint (None: nothing is stored).
        changes: what each checkpoint changed, by namespace and id (a file: nobody can ask for it later).
        bundle: the file that it is of (None: a database).
        questions: what it asks, each to be answered by itself (nobody answers a file).

    """

    view: BundleView
    why: Why
    plan: RecoveryPlan
    ledger: Ledger
    thread: ThreadView | None = None
    changes: Mapping[tuple[str, str], list[Change]] = field(default_factory=dict)
    bundle: RecoveryBundle | None = None
    questions: Sequence[Question] = ()

    @property
    def now_us(self) -> int:
        """The database clock when it was read."""
        return self.why.as_of_us

    @property
    def question(self) -> str | None:
        """What the run asks a person, as lines of JSON; of code that asks only what it asks."""
        asked = self.view.question
        if asked is None:
            return None
        if isinstance(asked, dict) and asked.get("kind") == QuestionKind.INTERRUPT:
            values = [one["value"] for one in asked["interrupts"]]
            asked = values[0] if len(values) == 1 else values
        return shortened(asked)

    @property
    def picture(self) -> Timeline:
        """The timeline."""
        return timeline(self.view, self.now_us)

    @property
    def unknown(self) -> list[tuple[OperationView, TryView]]:
        """Operations with the try that nothing proves the outcome of: what a person may settle."""
        pending = [one for one in self.view.operations if one.status == "pending" and one.tries]
        return [(one, one.tries[-1]) for one in pending if one.tries[-1].shown == "unknown"]

    @property
    def amounts(self) -> list[Amount]:
        """The limits of the run and of its newest invocations, kind by kind."""
        return [_amount(one) for one in self.ledger.levels]

    @property
    def writes(self) -> list[Write]:
        """The pending writes, namespace by namespace."""
        namespaces = () if self.thread is None else self.thread.namespaces
        return [
            Write(one.checkpoint_ns, write.task_id, write.channel, write.type, write.bytes)
            for one in namespaces
            for write in one.writes
        ]


def _amount(level: Level) -> Amount:
    kind, limit = level.kind, level.limit
    consumed, reserved = (min(1_000, 1_000 * one // max(limit, 1)) for one in (level.consumed, level.reserved))
    said = [amount_said(kind, one) for one in (limit, level.consumed, level.reserved)]
    name = _AMOUNTS[kind] if level.invocation is None else f"{_AMOUNTS[kind]} of invocation {level.invocation}"
    return Amount(kind, name, said[0], said[1], said[2], consumed, min(reserved, 1_000 - consumed), level.invocation)


def amount_said(kind: str, amount: int) -> str:
    """Return an amount as people read it."""
    return f"{money(amount)}" if kind == "cost_micros" else f"{amount:,}"


def taken_said(ticket: TicketRow) -> str:
    """Return what a ticket takes, as people read it."""
    taken = [(kind, getattr(ticket, kind)) for kind in KINDS]
    return ", ".join(f"{amount_said(kind, one)} {_AMOUNTS[kind]}" for kind, one in taken if one) or "nothing"
