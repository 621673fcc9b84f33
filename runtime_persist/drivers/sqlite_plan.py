"""Running a plan on one SQLite connection, inside a transaction that somebody else began."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from runtime_persist.dialects.sqlite import with_list
from runtime_persist.plan import BundleCall, Call, Outcome, Plan, Row

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable

    from runtime_persist.dialects import Dialect
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
        counts: dict[str, int] = {}
        values: dict[str, Row] = {}
        known = dict(call.params)
        for part in self._dialect.bundle(call.bundle).parts:
            fragment = part.fragment
            rows: list[Row] = []
            count = 0
            if fragment.source is None or counts[fragment.source]:
                self._reached(f"{job.name}:before:{fragment.name}")
                known.update(part.statement.constants)
                if fragment.rows:
                    given = [{**known, **row} for row in call.rows.get(fragment.name, ())]
                    count = max(connection.executemany(part.statement.sql, given).rowcount, 0) if given else 0
                else:
                    cursor = connection.execute(part.statement.sql, known)
                    rows = [dict(row) for row in cursor] if cursor.description else []
                    count = len(rows) if cursor.description else cursor.rowcount
            first = rows[0] if rows else dict.fromkeys(fragment.returns)
            counts[fragment.name] = known[f"{fragment.name}__count"] = count
            for column in fragment.returns:
                known[f"{fragment.name}__{column}"] = first[column]
            if rows and fragment.returns:
                values[fragment.name] = first
        return Outcome(counts, values)
