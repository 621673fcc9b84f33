"""Numbers of transactions: what puts the facts of many writers into an order that nobody can add to behind a reader."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import BigInteger, ColumnElement
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

if TYPE_CHECKING:
    from sqlalchemy import Dialect


class transaction_number(FunctionElement[int]):  # noqa: N801 (a SQL function)
    """A number of the writing transaction: no transaction that ends later than a reader looks has a settled one.

    PostgreSQL: the transaction's id. SQLite has one writer at a time, so ``counted`` (an expression that counts up)
    will do.
    """

    type = BigInteger()
    name = "transaction_number"
    inherit_cache = True

    def __init__(self, counted: ColumnElement[int]) -> None:
        """Use ``counted`` where transactions have no ids."""
        super().__init__(counted)


_TRANSACTION_ID = "(pg_current_xact_id()::text)::bigint"


@compiles(transaction_number, "postgresql")
def _transaction_postgresql(_element: transaction_number, _compiler: Any, **_: Any) -> str:
    return _TRANSACTION_ID


@compiles(transaction_number, "sqlite")
def _transaction_sqlite(element: transaction_number, compiler: Any, **options: Any) -> str:
    return str(compiler.process(element.clauses.clauses[0], **options))


class settled_number(FunctionElement[int]):  # noqa: N801 (a SQL function)
    """The transaction number below which every transaction has ended: what is smaller is never added to."""

    type = BigInteger()
    name = "settled_number"
    inherit_cache = True


@compiles(settled_number, "postgresql")
def _settled_postgresql(_element: settled_number, _compiler: Any, **_: Any) -> str:
    return "(pg_snapshot_xmin(pg_current_snapshot())::text)::bigint"


@compiles(settled_number, "sqlite")
def _settled_sqlite(_element: settled_number, _compiler: Any, **_: Any) -> str:
    return "9223372036854775807"


class unassigned_number(FunctionElement[int]):  # noqa: N801 (a SQL function)
    """The transaction number from which on none was given when the statement began: nothing committed has one."""

    type = BigInteger()
    name = "unassigned_number"
    inherit_cache = True


@compiles(unassigned_number, "postgresql")
def _unassigned_postgresql(_element: unassigned_number, _compiler: Any, **_: Any) -> str:
    return "(pg_snapshot_xmax(pg_current_snapshot())::text)::bigint"


@compiles(unassigned_number, "sqlite")
def _unassigned_sqlite(_element: unassigned_number, _compiler: Any, **_: Any) -> str:
    return "9223372036854775807"


class counts_rows(ColumnElement[bool]):  # noqa: N801 (reads as SQL)
    """Whether transaction numbers are counted from rows, so that rows that go must leave theirs behind."""

    inherit_cache = True


@compiles(counts_rows, "postgresql")
def _counts_postgresql(_element: counts_rows, _compiler: Any, **_: Any) -> str:
    return "false"


@compiles(counts_rows, "sqlite")
def _counts_sqlite(_element: counts_rows, _compiler: Any, **_: Any) -> str:
    return "1"


class unnamed_number(FunctionElement[int]):  # noqa: N801 (a SQL function)
    """The default of a transaction number, of rows that older code writes (SQLite: see ``numbered_by_trigger``)."""

    type = BigInteger()
    name = "unnamed_number"
    inherit_cache = True


@compiles(unnamed_number, "postgresql")
def _unnamed_postgresql(_element: unnamed_number, _compiler: Any, **_: Any) -> str:
    return _TRANSACTION_ID


@compiles(unnamed_number, "sqlite")
def _unnamed_sqlite(_element: unnamed_number, _compiler: Any, **_: Any) -> str:
    return "NULL"


def numbered_by_trigger(dialect: Dialect, table: str, column: str) -> list[str]:
    """Return the statements that number a table's old rows, and those that older code will write.

    Where a column's default can be the transaction's number, there are none.
    """
    if dialect.name != "sqlite":
        return []
    older = f"SELECT coalesce(max({column}), 0) + 1 FROM {table} WHERE space = NEW.space"  # noqa: S608 (our names)
    number = f"UPDATE {table} SET {column} = ({older}) WHERE rowid = NEW.rowid"  # noqa: S608 (our names)
    return [
        f"UPDATE {table} SET {column} = rowid",  # noqa: S608 (our names)
        f"CREATE TRIGGER tr_{table}_{column} AFTER INSERT ON {table} WHEN NEW.{column} IS NULL BEGIN {number}; END",
    ]


def followed_by_trigger(dialect: Dialect, schema: str | None) -> list[str]:
    """Return the statements that keep ``rp_runs.event_position`` at a run's last event, of old rows too.

    Older code does not know the column: it writes events, and counts them in ``event_seq``. SQLite: its events get
    their numbers by a trigger of their own, which comes first. PostgreSQL: as its events do, the run gets the number of
    the transaction.
    """
    place = f"{dialect.identifier_preparer.quote(schema)}." if schema else ""
    mine = "space = {0}.space AND run_id = {0}.run_id"
    last = f"SELECT max(position) FROM {place}rp_events WHERE {mine}"  # noqa: S608 (our names)
    of_old_rows = f"UPDATE {place}rp_runs SET event_position = coalesce(({last.format('rp_runs')}), 0)"  # noqa: S608
    if dialect.name == "sqlite":
        told = f"SET event_position = max(event_position, coalesce(({last.format('NEW')}), 0))"
        follow = f"UPDATE rp_runs {told} WHERE {mine.format('NEW')}"
        begun = "AFTER INSERT ON rp_runs WHEN NEW.event_seq > 0 AND NEW.event_position = 0"
        return [
            of_old_rows,
            f"CREATE TRIGGER tr_rp_runs_event_position AFTER UPDATE OF position ON rp_events BEGIN {follow}; END",
            f"CREATE TRIGGER tr_rp_runs_event_position_new {begun} BEGIN {follow}; END",
        ]
    before = "BEFORE {0} ON {1}rp_runs FOR EACH ROW WHEN ({2}) EXECUTE FUNCTION {1}rp_follow_events()"
    moved = "NEW.event_seq > OLD.event_seq AND NEW.event_position = OLD.event_position"
    begun = "NEW.event_seq > 0 AND NEW.event_position = 0"
    body = (
        "BEGIN IF TG_OP = 'INSERT' THEN EXECUTE 'SELECT max(position) FROM ' || quote_ident(TG_TABLE_SCHEMA) || "  # noqa: S608
        "'.rp_events WHERE space = $1 AND run_id = $2' INTO NEW.event_position USING NEW.space, NEW.run_id; "
        f"NEW.event_position := coalesce(NEW.event_position, {_TRANSACTION_ID}); "
        f"ELSE NEW.event_position := greatest(OLD.event_position, {_TRANSACTION_ID}); END IF; RETURN NEW; END"
    )
    return [
        of_old_rows,
        f"CREATE FUNCTION {place}rp_follow_events() RETURNS trigger LANGUAGE plpgsql AS $$ {body} $$",
        f"CREATE TRIGGER tr_rp_runs_event_position {before.format('UPDATE', place, moved)}",
        f"CREATE TRIGGER tr_rp_runs_event_position_new {before.format('INSERT', place, begun)}",
    ]


class greater(FunctionElement[int]):  # noqa: N801 (a SQL function)
    """The greater of two numbers."""

    type = BigInteger()
    name = "greater"
    inherit_cache = True


@compiles(greater, "postgresql")
def _greater_postgresql(element: greater, compiler: Any, **options: Any) -> str:
    return f"GREATEST({compiler.process(element.clauses, **options)})"


@compiles(greater, "sqlite")
def _greater_sqlite(element: greater, compiler: Any, **options: Any) -> str:
    return f"max({compiler.process(element.clauses, **options)})"
