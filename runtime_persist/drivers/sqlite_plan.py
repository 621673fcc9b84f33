"""Running a plan on one SQLite connection, inside a transaction that somebody else began."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from runtime_persist.dialects.sqlite import with_list
from runtime_persist.plan import BundleCall, Call, Outcome, Plan, Row

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable

    from runtime_persist.dialects import Dialect
    from runtime_persist.dialects.base import CompiledPart
    from runtime_persist.drivers.base import Job

R = TypeVar("R")


class PlanRunner:
    """Runs the steps of plans; ``reached`` is told every fault cut of a writing job."""

    def __init__(self, dialect: Dialect, reached: Callable[[str], None]) -> None:
        """Write statements as ``dialect`` does."""
        self._dialect = dialect
        self._reached = reached

    def drive(self, connection: sqlite3.Connection, job: Job[R]) -> R:
        """Run a job's plan to its end."""
        plan: Plan[R] = job.plan()
        try:
            step = next(plan)
            while True:
                if isinstance(step, Call):
                    step = plan.send(self._call(connection, job, step))
                else:
                    step = plan.send(self._bundle(connection, job, step))
        except StopIteration as done:
            result: R = done.value
            return result

    def _call(self, connection: sqlite3.Connection, job: Job[Any], call: Call) -> list[Row]:
        compiled = self._dialect.query(call.query)
        if job.mode.writes:
            self._reached(f"{job.name}:before:{compiled.name}")
        if call.query.each is None:
            return [dict(row) for row in connection.execute(compiled.sql, compiled.filled(call.params))]
        parts = with_list(compiled, call.query.each, call.params)
        return [dict(row) for sql, params in parts for row in connection.execute(sql, params)]

    def _bundle(self, connection: sqlite3.Connection, job: Job[Any], call: BundleCall) -> Outcome:
        """Run a bundle's parts in order; what one gave reaches the next ones as parameters."""
        counts: dict[str, int] = {}
        values: dict[str, Row] = {}
        known = dict(call.params)
        for part in self._dialect.bundle(call.bundle).parts:
            gave: dict[str, tuple[int, Row | None]] = {}
            if part.source is None or counts[part.source]:
                for fragment in part.fragments:
                    self._reached(f"{job.name}:before:{fragment.name}")
                known.update(part.statement.constants)
                gave = _read_part(connection, part, known) if len(part.fragments) > 1 else {}
                gave = gave or {part.fragments[0].name: _run_part(connection, part, known, call)}
            for fragment in part.fragments:
                count, row = gave.get(fragment.name, (0, None))
                counts[fragment.name] = known[f"{fragment.name}__count"] = count
                for column in fragment.returns:
                    known[f"{fragment.name}__{column}"] = None if row is None else row[column]
                if row is not None and fragment.returns:
                    values[fragment.name] = row
        return Outcome(counts, values)


def _run_part(
    connection: sqlite3.Connection, part: CompiledPart, known: dict[str, Any], call: BundleCall
) -> tuple[int, Row | None]:
    """Run one fragment; return how many rows it gave or wrote, and the first one it returned."""
    (fragment,), sql = part.fragments, part.statement.sql
    if fragment.rows:
        given = [{**known, **row} for row in call.rows.get(fragment.name, ())]
        return max(connection.executemany(sql, given).rowcount, 0) if given else 0, None
    cursor = connection.execute(sql, known)
    if not cursor.description:
        return cursor.rowcount, None
    rows = [dict(row) for row in cursor]
    return len(rows), rows[0] if rows else None


def _read_part(
    connection: sqlite3.Connection, part: CompiledPart, known: dict[str, Any]
) -> dict[str, tuple[int, Row | None]]:
    """Run fragments that only read as one select; return for each how many rows it gave, and the first one."""
    row = connection.execute(part.statement.sql, known).fetchone()
    gave: dict[str, tuple[int, Row | None]] = {}
    for fragment in part.fragments:
        count = row[f"{fragment.name}__count"]
        first = {name: row[f"{fragment.name}__{name}"] for name in fragment.returns} if count else None
        gave[fragment.name] = count, first
    return gave
