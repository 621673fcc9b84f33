"""What a run asks a person, told apart by what an answer to it is."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict


class QuestionKind(StrEnum):
    """``interrupt``: code of the graph asks, the answer is a value. ``breakpoint``: it stands before or behind a node.

    ``unknown_operation``: nothing proves what became of a call. ``budget``: a budget is spent.
    """

    INTERRUPT = "interrupt"
    BREAKPOINT = "breakpoint"
    UNKNOWN_OPERATION = "unknown_operation"
    BUDGET = "budget"


class Question(BaseModel):
    """One thing that a run waits for.

    Attributes:
        run_id: the run.
        question_id: of this wait: all that the run asks at once has one id, and what it asks later another one.
        kind: what an answer to it is.
        asked_us: since when the run waits, in microseconds since 1970 by the database clock.
        interrupt_id: LangGraph's id of the interrupt: a key for :meth:`runs.resume`.
        value: what the graph's code asked.
        next: nodes that come next.
        operation_id: the operation whose outcome is unknown: for :meth:`runs.resolve`.
        budget: what is spent: its kind, limit, reserved and consumed: for :meth:`runs.raise_budget`.
        operation: what is known of that operation: name, request, idempotency key, try.

    """

    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True)

    run_id: str
    question_id: str
    kind: QuestionKind
    asked_us: int
    interrupt_id: str | None = None
    value: Any = None
    next: tuple[str, ...] = ()
    operation_id: str | None = None
    operation: Mapping[str, Any] | None = None
    budget: Mapping[str, Any] | None = None


def questions_of(row: Mapping[str, Any], stored: Mapping[str, Any] | None) -> list[Question]:
    """Return the questions of a run's row, given the question that is stored with it (None: none)."""
    if stored is None:
        return []
    kind = QuestionKind(stored["kind"])
    base = {
        "run_id": row["run_id"],
        "question_id": row["attempt_id"] or "",
        "kind": kind,
        "asked_us": row["updated_us"],
        "next": tuple(stored.get("next") or ()),
    }
    if kind is QuestionKind.INTERRUPT:
        return [Question(**base, interrupt_id=one["id"], value=one["value"]) for one in stored["interrupts"]]
    if kind is QuestionKind.UNKNOWN_OPERATION:
        known = {name: found for name, found in stored.items() if name not in {"kind", "operation_id"}}
        return [Question(**base, operation_id=stored["operation_id"], operation=known)]
    if kind is QuestionKind.BUDGET:
        return [Question(**base, budget={name: found for name, found in stored.items() if name != "kind"})]
    return [Question(**base)]
