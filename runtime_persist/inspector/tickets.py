"""The ledger of a run's budget for people: what is left of each limit, and which calls hold the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict

from runtime_persist.errors import InvalidInput, RunNotFound
from runtime_persist.inspector.records import run_of
from runtime_persist.model import budgets
from runtime_persist.model.budgets import KINDS, TicketState
from runtime_persist.queries import tickets as queries

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from runtime_persist.engine import Engine, Flow
    from runtime_persist.inspector.bundles.recovery import RecoveryBundle
    from runtime_persist.plan import Row


class TicketRow(BaseModel):
    """What one call took. Times are microseconds since 1970 by the database clock, costs millionths.

    Attributes:
        name: of the call.
        state: ``reserved`` (it is being made, or nobody knows what became of it), ``consumed`` or ``released``.
        invocation: the call of a graph inside the run that it was made in (None: a node of the run's own graph).
        epoch: of the run that reserved it.

    """

    model_config = ConfigDict(frozen=True)

    operation_id: str
    name: str | None
    state: str
    invocation: str | None
    epoch: int
    loops: int
    tool_calls: int
    tokens: int
    cost_micros: int
    reserved_us: int
    settled_us: int | None


class Level(BaseModel):
    """How much of one limit is taken: a call waits while what it needs fits only without what is reserved.

    Attributes:
        invocation: whose limit it is (None: the run's).
        kind: what is limited.

    """

    model_config = ConfigDict(frozen=True)

    invocation: str | None
    kind: str
    limit: int
    reserved: int
    consumed: int


class Ledger(BaseModel):
    """A run's budget: its limits, those of its newest invocations, and tickets."""

    model_config = ConfigDict(frozen=True)

    run_id: str
    levels: tuple[Level, ...]
    tickets: tuple[TicketRow, ...]


def load_tickets(engine: Engine, run_id: str, limit: int, *, held: bool) -> Flow[Ledger]:
    """Read the newest tickets of a run; ``held``: only those that are reserved (raises RunNotFound, InvalidInput)."""
    _check(limit)
    found: queries.Found | None = yield engine.coordinator.read(
        "read_tickets", lambda: queries.of_run(engine.space, run_id, limit, held=held), snapshot=True
    )
    if found is None:
        msg = f"there is no run {run_id!r} in space {engine.space!r}"
        raise RunNotFound(msg, run_id=run_id)
    return _ledger(found.run, found.tickets, found.invocations)


def tickets_of(bundle: RecoveryBundle, run_id: str, limit: int, *, held: bool) -> Ledger:
    """Return the same out of a bundle."""
    run_of(bundle, run_id)
    _check(limit)
    names = {row["operation_id"]: row["name"] for row in bundle.rows["operations"]}
    rows = [{**row, "name": names.get(row["operation_id"])} for row in bundle.rows["tickets"]]
    rows.sort(key=lambda row: row["operation_id"], reverse=True)
    invocations = {row["invocation"]: _taken(rows, row["invocation"]) for row in rows if row["invocation"] is not None}
    shown = rows
    if held:
        reserved = [row for row in rows if row["state"] == TicketState.RESERVED]
        shown = sorted(reserved, key=lambda row: (row["reserved_us"], row["operation_id"]))
    return _ledger(bundle.run, shown[:limit], list(invocations.values())[:limit])


def _check(limit: int) -> None:
    if limit < 0:
        msg = f"limit must not be negative, got {limit}"
        raise InvalidInput(msg, limit=limit)


def _taken(rows: Sequence[Mapping[str, Any]], invocation: str) -> dict[str, Any]:
    taken: dict[str, Any] = {"invocation": invocation}
    for kind in KINDS:
        for state in (TicketState.RESERVED, TicketState.CONSUMED):
            mine = (row[kind] for row in rows if row["invocation"] == invocation and row["state"] == state)
            taken[f"{kind}_{state.value}"] = sum(mine)
    return taken


def _ledger(run: Row, rows: Sequence[Mapping[str, Any]], invocations: Sequence[Mapping[str, Any]]) -> Ledger:
    return Ledger(
        run_id=run["run_id"],
        levels=tuple(_levels(run, invocations)),
        tickets=tuple(TicketRow.model_validate(dict(row), extra="ignore") for row in rows),
    )


def _levels(run: Row, invocations: Sequence[Mapping[str, Any]]) -> Iterator[Level]:
    for kind, spent in budgets.spent(run).items():
        yield Level(invocation=None, kind=kind, **spent._asdict())
    for taken in invocations:
        for kind, spent in budgets.spent_by(run, taken).items():
            yield Level(invocation=taken["invocation"], kind=kind, **spent._asdict())
