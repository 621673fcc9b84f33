"""What a dialect knows: how statements are written and what its errors mean."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sqlalchemy import Connection, Executable
    from sqlalchemy.engine.interfaces import Dialect as SqlAlchemyDialect

    from runtime_persist.errors import RuntimePersistError
    from runtime_persist.plan import Bundle, Fragment, Query

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Compiled:
    """A statement's text, the order of its parameters, and the name it has in this program and on the server.

    ``constants`` are the values that SQLAlchemy turned into parameters by itself.
    """

    name: str
    sql: str
    order: tuple[str, ...]
    server_name: str
    constants: Mapping[str, Any]

    def filled(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the parameters with the constants."""
        return {**self.constants, **params} if self.constants else params


@dataclass(frozen=True, slots=True)
class CompiledPart:
    """A statement of a bundle (databases without data-modifying CTEs): one fragment that writes, or some that read.

    Its fragments run when ``source`` gave a row; those that read ``together`` are one select with one row, as of a
    whole bundle. One by itself has its own statement, which ``writes`` or gives the rows themselves.
    """

    fragments: tuple[Fragment, ...]
    source: str | None
    statement: Compiled
    together: bool = False
    writes: bool = False


@dataclass(frozen=True, slots=True)
class CompiledBundle:
    """A bundle as one statement (``whole``) or as a few (``parts``).

    ``steady`` is one select in place of the first parts, for the usual case that the rows they would make are there:
    when its last fragment gives a row, ``rest`` follows. Otherwise it told nothing, and all parts are run.

    ``together`` is the whole for a place among others in one transaction: it waits for nobody's lock, and writes
    nothing where it would have to.
    """

    bundle: Bundle
    whole: Compiled | None
    parts: tuple[CompiledPart, ...]
    together: Compiled | None = None
    steady: CompiledPart | None = None
    rest: tuple[CompiledPart, ...] = ()


def server_name(sql: str) -> str:
    """Return the name that a statement has on the server: of its text, so that nobody's is another one."""
    return f"rp_{hashlib.blake2b(sql.encode(), digest_size=12).hexdigest()}"


class Dialect(ABC):
    """Statements and errors of one database. Compiled statements are kept for the life of the dialect."""

    name: ClassVar[str]
    has_schemas: ClassVar[bool]

    def __init__(self, schema: str | None = None) -> None:
        """Write every table name with ``schema`` in front of it (None: the connection's default)."""
        self.schema = schema
        self._queries: dict[Query, Compiled] = {}
        self._bundles: dict[Bundle, CompiledBundle] = {}

    @abstractmethod
    def sqlalchemy(self) -> SqlAlchemyDialect:
        """Return the SQLAlchemy dialect that writes the statements."""

    @abstractmethod
    def bundle(self, bundle: Bundle) -> CompiledBundle:
        """Return a bundle's statements."""

    @abstractmethod
    def classify(self, error: BaseException) -> RuntimePersistError:
        """Return the typed error that a native error means; its ``kind`` says whether trying again can help."""

    def query(self, query: Query) -> Compiled:
        """Return a query's statement."""
        found = self._queries.get(query)
        if found is None:
            found = self._queries[query] = self.compile(query.name, self.chosen(query))
        return found

    def chosen(self, query: Query) -> Executable:
        """Return the statement that a query is here."""
        return query.statement

    def in_one(self, queries: tuple[Query, ...]) -> Compiled:
        """Return statements that each write a row as one (see :class:`runtime_persist.plan.Together`).

        A parameter's name has the number of its statement in front: ``0:space``. Its row has the number of rows that
        each returned; it fails when the first returned none.
        """
        raise NotImplementedError(self.name)

    def compile(self, name: str, statement: Executable, dialect: SqlAlchemyDialect | None = None) -> Compiled:
        """Write a statement out with this schema, and with the parameters of ``dialect`` (None: this one's)."""
        translate: dict[str | None, str | None] | None = {None: self.schema} if self.schema else None
        compiled: Any = statement.compile(  # type: ignore[attr-defined]  # every Executable we build is a ClauseElement
            dialect=dialect or self.sqlalchemy(),
            schema_translate_map=translate,
            render_schema_translate=bool(translate),
        )
        order = compiled.positiontup if compiled.positional else tuple(compiled.params)
        constants = {key: value for key, value in compiled.params.items() if value is not None}
        return Compiled(name, compiled.string, tuple(order), server_name(compiled.string), constants)

    def classify_refused(self, error: BaseException) -> RuntimePersistError:
        """Return the typed error of a connection that could not be opened: no statement was sent."""
        return self.classify(error)

    @abstractmethod
    def with_connection(self, location: str, work: Callable[[Connection], R], *, alone: bool = True) -> R:
        """Run ``work`` on a SQLAlchemy connection inside one transaction (migrations; never the commit path).

        ``alone``: other processes that call this wait, on PostgreSQL by an advisory lock of the transaction, on
        SQLite by ``BEGIN IMMEDIATE``. Who only looks need not be alone, and waits for nobody.
        """

    def known_fault(self, version: str) -> str | None:  # noqa: ARG002 (of this database none is known)
        """Say what is known to be wrong with a version of the database, None when nothing is."""
        return None

    @abstractmethod
    def offline_url(self) -> str:
        """Return the URL that Alembic needs to write SQL without a connection."""
