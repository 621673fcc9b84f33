"""Running a plan on one SQLite connection, inside a transaction that somebody else began."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeVar

from runtime_persist.dialects.sqlite import with_list
from runtime_persist.plan import BundleCall, Call, Outcome, Plan, Row, Together

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Mapping, Sequence

    from runtime_persist.dialects import Dialect
    from runtime_persist.dialects.base import CompiledPart
    from runtime_persist.drivers.base import Job
    from runtime_persist.plan import Bundle

R = TypeVar("R")


class PlanRunner:
    """Runs the steps of plans; ``reached`` is told every fault cut of a writing job (None: nobody wants to know)."""

    def __init__(self, dialect: Dialect, reached: Callable[[str], None] | None) -> None:
        """Write statements as ``dialect`` does."""
        self._dialect = dialect
        self._reached = reached
        self._programs: dict[Bundle, _Program] = {}

    def drive(self, connection: sqlite3.Connection, job: Job[R]) -> R:
        """Run a job's plan to its end."""
        plan: Plan[R] = job.plan()
        try:
            step = next(plan)
            while True:
                if isinstance(step, Call):
                    step = plan.send(self._call(connection, job, step))
                elif isinstance(step, Together):
                    step = plan.send(self._together(connection, job, step))
                else:
                    step = plan.send(self._bundle(connection, job, step))
        except StopIteration as done:
            result: R = done.value
            return result

    def _call(self, connection: sqlite3.Connection, job: Job[Any], call: Call) -> list[Row]:
        compiled = self._dialect.query(call.query)
        if self._reached is not None and job.mode.writes:
            self._reached(f"{job.name}:before:{compiled.name}")
        if call.query.each is None:
            return [dict(row) for row in connection.execute(compiled.sql, compiled.filled(call.params))]
        parts = with_list(compiled, call.query.each, call.params)
        return [dict(row) for sql, params in parts for row in connection.execute(sql, params)]

    def _together(self, connection: sqlite3.Connection, job: Job[Any], step: Together) -> list[int] | None:
        counts: list[int] = []
        for call in step.calls:
            counts.append(len(self._call(connection, job, call)))
            if not counts[0]:
                return None
        return counts

    def _bundle(self, connection: sqlite3.Connection, job: Job[Any], call: BundleCall) -> Outcome:
        """Run a bundle's parts in order; what one gave reaches the next ones as parameters."""
        program = self._programs.get(call.bundle)
        if program is None:
            program = self._programs[call.bundle] = _Program(self._dialect, call.bundle)
        run = _Run(connection, call)
        parts = program.parts
        if program.steady is not None:
            self._reach(job, program.steady)
            if run.steady(program.steady, program.made):
                parts = program.rest
        for part in parts:
            if run.passes_over(part):
                run.nothing(part)
            else:
                self._reach(job, part)
                run.part(part)
        return Outcome(run.counts, run.values)

    def _reach(self, job: Job[Any], part: _Part) -> None:
        if self._reached is not None:
            for name in part.names:
                self._reached(f"{job.name}:before:{name}")


class _Part:
    """A statement of a bundle, with all that is the same each time it is run.

    Attributes:
        names: of its fragments.
        sql: its text.
        take: the parameters, in order, out of what is known.
        constants: parameters that are always the same.
        source: the fragment that must have given a row.
        unless: the fragment that must not have.
        writes: it changes rows and returns none; their number is what it gave.
        each: the fragment whose row parameter it is run for.
        gave: of each fragment: its name, where its count stands in the row, and its columns behind it.

    """

    __slots__ = ("constants", "each", "gave", "names", "source", "sql", "take", "together", "unless", "writes")

    def __init__(self, part: CompiledPart) -> None:
        first = part.fragments[0]
        self.names = tuple(fragment.name for fragment in part.fragments)
        self.sql = part.statement.sql
        self.take = _taker(part.statement.order)
        self.constants = part.statement.constants
        self.source = part.source
        self.unless = first.unless
        self.together = part.together
        self.writes = part.writes and not first.returns
        self.each = first.name if first.rows else None
        at = 0
        gave = []
        for fragment in part.fragments:
            gave.append((fragment.name, f"{fragment.name}__count", at, tuple(_known(fragment.name, fragment.returns))))
            at += 1 + len(fragment.returns)
        self.gave = tuple(gave)


class _Program:
    """The parts of a bundle; ``steady``, ``rest``: see :class:`CompiledBundle`; ``made``: what is not made then."""

    __slots__ = ("made", "parts", "rest", "steady")

    def __init__(self, dialect: Dialect, bundle: Bundle) -> None:
        compiled = dialect.bundle(bundle)
        self.parts = tuple(map(_Part, compiled.parts))
        self.rest = tuple(map(_Part, compiled.rest))
        self.steady = None if compiled.steady is None else _Part(compiled.steady)
        self.made = tuple(fragment.name for fragment in bundle.fragments if fragment.unless is not None)


def _known(name: str, columns: Sequence[str]) -> list[tuple[str, str]]:
    return [(column, f"{name}__{column}") for column in columns]


def _taker(order: Sequence[str]) -> Callable[[Mapping[str, Any]], tuple[Any, ...]]:
    """Return what takes some values, in order, out of a mapping."""
    if len(order) > 1:
        return itemgetter(*order)
    return lambda known: tuple(known[name] for name in order)


class _Run:
    """A bundle on its way: what its fragments gave, and what the next ones take."""

    __slots__ = ("_connection", "_known", "_rows", "counts", "values")

    def __init__(self, connection: sqlite3.Connection, call: BundleCall) -> None:
        self.counts: dict[str, int] = {}
        self.values: dict[str, Row] = {}
        self._connection = connection
        self._known = dict(call.params)
        self._rows = call.rows

    def passes_over(self, part: _Part) -> bool:
        """Return whether a part would do nothing: its source gave no row, or what it would make is there."""
        counts = self.counts
        gone = part.source is not None and not counts[part.source]
        return gone or (part.unless is not None and bool(counts[part.unless]))

    def steady(self, part: _Part, made: Sequence[str]) -> bool:
        """Run the select for the usual case, in which nothing is ``made``; return whether it is the case."""
        for name in made:
            self.counts[name] = self._known[f"{name}__count"] = 0
        self._read(part)
        return bool(self.counts[part.names[-1]])

    def nothing(self, part: _Part) -> None:
        """Note a part that is not run."""
        for name, counted, _, columns in part.gave:
            self.counts[name] = self._known[counted] = 0
            for _, known in columns:
                self._known[known] = None

    def part(self, part: _Part) -> None:
        """Run a part."""
        if part.together:
            self._read(part)
            return
        known = self._known
        if part.constants:
            known.update(part.constants)
        name, counted, _, columns = part.gave[0]
        if part.each is not None:
            count = self._each(part, self._rows.get(part.each, ()))
        elif part.writes:
            count = self._connection.execute(part.sql, part.take(known)).rowcount
        else:
            rows = self._connection.execute(part.sql, part.take(known)).fetchall()
            count = len(rows)
            self._note(name, columns, rows[0] if rows else None)
        self.counts[name] = known[counted] = count

    def _each(self, part: _Part, rows: Sequence[Mapping[str, Any]]) -> int:
        """Run a part for each row of its row parameter; return how many rows it wrote."""
        if not rows:
            return 0
        known = dict(self._known)
        given = []
        for row in rows:
            known.update(row)
            given.append(part.take(known))
        return max(self._connection.executemany(part.sql, given).rowcount, 0)

    def _read(self, part: _Part) -> None:
        """Run fragments that only read as one select; each gave its count, and then its columns."""
        known = self._known
        if part.constants:
            known.update(part.constants)
        row = self._connection.execute(part.sql, part.take(known)).fetchone()
        for name, counted, at, columns in part.gave:
            count = self.counts[name] = known[counted] = row[at]
            if columns:
                self._note(name, columns, row[at + 1 :] if count else None)

    def _note(self, name: str, columns: Sequence[tuple[str, str]], row: Sequence[Any] | None) -> None:
        """Keep the columns that a fragment returned (no row: they are NULL)."""
        if row is None:
            for _, known in columns:
                self._known[known] = None
            return
        found: dict[str, Any] = {}
        for (column, known), value in zip(columns, row, strict=False):
            found[column] = self._known[known] = value
        if columns:
            self.values[name] = found
