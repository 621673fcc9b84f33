"""Reading the tables of langgraph's own savers, and nothing but reading.

PostgresSaver gives its checkpoints itself (``list``); of SqliteSaver only the connection is used, because its first
call changes the file (journal mode, columns). Task paths and positions of writes are in no CheckpointTuple, so writes
come from their rows.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

import orjson
from langgraph.checkpoint.base import CheckpointTuple
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from runtime_persist.adapters.workflow.encoding import Place
from runtime_persist.dialects import parse_url
from runtime_persist.engine.payloads import loaded
from runtime_persist.errors import CheckpointCorrupt, InvalidInput, MissingDependency, UntrustedType

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from langgraph.checkpoint.serde.base import SerializerProtocol

_EXTRA = "install runtime-persist[import]"


@dataclass(frozen=True, slots=True)
class Write:
    """One write as its saver stored it."""

    checkpoint_id: str
    task_id: str
    task_path: str
    idx: int
    channel: str
    value: Any


class Source(Protocol):
    """What is read of another saver."""

    def threads(self) -> list[str]:
        """Return all thread ids."""

    def namespaces(self, thread_id: str) -> list[str]:
        """Return the namespaces of a thread that hold anything."""

    def ids(self, thread_id: str, ns: str) -> list[str]:
        """Return the checkpoint ids of a namespace, newest first."""

    def page(self, thread_id: str, ns: str, ids: Sequence[str]) -> list[CheckpointTuple]:
        """Return some checkpoints that follow each other, newest first (their pending writes do not count)."""

    def early_ids(self, thread_id: str, ns: str) -> list[str]:
        """Return the ids of checkpoints that have writes but are not stored."""

    def writes(self, thread_id: str, ns: str, ids: Sequence[str]) -> list[Write]:
        """Return the writes of some checkpoints."""


class _Reader:
    """Loads the source's bytes with the target's serializer; legacy JSON with LangGraph's, which makes safe types."""

    def __init__(self, serde: SerializerProtocol) -> None:
        self._serde = serde
        self._json = JsonPlusSerializer(allowed_msgpack_modules=None)

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        return self._serde.dumps_typed(obj)

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        kind, content = data[0] or "json", bytes(data[1] or b"")
        if kind == "json":
            return _revived(loaded(self._json, kind, content, "a value of the source"))
        return loaded(self._serde, kind, content, "a value of the source")


def _revived(value: Any) -> Any:
    """Return what legacy JSON stood for; LangGraph leaves the record of a class it does not make as a dict.

    Raises:
        UntrustedType: there is such a record in it.

    """
    waiting = [value]
    while waiting:
        found = waiting.pop()
        if type(found) is dict and "lc" in found and found.get("type") == "constructor":
            name = ".".join(map(str, found.get("id") or ()))
            msg = f"a value of the source is a {name} in legacy JSON, which is not made again"
            raise UntrustedType(msg, type=name, reason="JSON constructors are never called")
        if type(found) in (dict, list):
            waiting += found.values() if type(found) is dict else found
    return value


class _Tables:
    """The statements that both savers' tables share."""

    sign = "?"
    writes_table = "writes"
    value = "value"
    task_path = "task_path"

    def __init__(self, connection: Any, serde: _Reader) -> None:
        self._connection = connection
        self._serde = serde

    def _rows(self, sql: str, *params: Any) -> list[tuple[Any, ...]]:
        found = self._connection.execute(sql.replace("?", self.sign), params).fetchall()
        return [tuple(row.values()) if isinstance(row, dict) else tuple(row) for row in found]

    def _first(self, sql: str, *params: Any) -> list[str]:
        return [row[0] for row in self._rows(sql, *params)]

    def threads(self) -> list[str]:
        return self._first("SELECT DISTINCT thread_id FROM checkpoints ORDER BY thread_id")

    def namespaces(self, thread_id: str) -> list[str]:
        each = "SELECT checkpoint_ns FROM {} WHERE thread_id = ?"
        both = f"{each.format('checkpoints')} UNION {each.format(self.writes_table)}"
        return sorted(self._first(both, thread_id, thread_id))

    def ids(self, thread_id: str, ns: str) -> list[str]:
        found = self._first(
            "SELECT checkpoint_id FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ?", thread_id, ns
        )
        return sorted(found, reverse=True)

    def early_ids(self, thread_id: str, ns: str) -> list[str]:
        stored = set(self.ids(thread_id, ns))
        sql = f"SELECT DISTINCT checkpoint_id FROM {self.writes_table} WHERE thread_id = ? AND checkpoint_ns = ?"  # noqa: S608
        return sorted(set(self._first(sql, thread_id, ns)) - stored)

    def writes(self, thread_id: str, ns: str, ids: Sequence[str]) -> list[Write]:
        columns = f"task_id, {self.task_path}, idx, channel, type, {self.value}"
        sql = (
            f"SELECT {columns} FROM {self.writes_table} "  # noqa: S608 (words of this class)
            "WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ? ORDER BY task_id, idx"
        )
        return [
            Write(one, task, path, idx, channel, self._serde.loads_typed((kind, value)))
            for one in ids
            for task, path, idx, channel, kind, value in self._rows(sql, thread_id, ns, one)
        ]


class _Sqlite(_Tables):
    def page(self, thread_id: str, ns: str, ids: Sequence[str]) -> list[CheckpointTuple]:
        sql = (
            "SELECT parent_checkpoint_id, type, checkpoint, metadata FROM checkpoints "
            "WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?"
        )
        place = Place(thread_id, ns, None)
        return [
            CheckpointTuple(
                place.config(one),
                self._serde.loads_typed((kind, data)),
                self._metadata(metadata),
                place.config(parent) if parent else None,
            )
            for one in ids
            for parent, kind, data, metadata in self._rows(sql, thread_id, ns, one)
        ]

    def _metadata(self, data: Any) -> Any:
        try:
            return orjson.loads(data) if data else {}
        except orjson.JSONDecodeError as error:
            msg = "the metadata of a checkpoint of the source is no JSON"
            raise CheckpointCorrupt(msg) from error


class _Postgres(_Tables):
    sign = "%s"
    writes_table = "checkpoint_writes"
    value = "blob"

    def __init__(self, saver: Any, serde: _Reader) -> None:
        super().__init__(saver.conn, serde)
        self._saver = saver

    def page(self, thread_id: str, ns: str, ids: Sequence[str]) -> list[CheckpointTuple]:
        config = Place(thread_id, ns, None).config("")
        found = [self._saver.list({"configurable": {**config["configurable"], "checkpoint_id": one}}) for one in ids]
        return [one for listed in found for one in listed]


@contextmanager
def opened(url: str | Path, serde: SerializerProtocol, schema: str | None = None) -> Iterator[Source]:
    """Open another saver's database for reading.

    Args:
        url: as for :meth:`WorkflowCheckpointAdapter.from_conn_string`.
        serde: loads the values.
        schema: PostgreSQL schema of its tables (None: the connection's default).

    Raises:
        InvalidUrl, InvalidInput: there are no checkpoints of langgraph's savers, or their tables are too old.
        MissingDependency: the saver's package is not installed.

    """
    parsed = parse_url(url)
    reader = _Reader(serde)
    if parsed.dialect == "sqlite":
        if not Path(parsed.location).is_file():
            msg = f"there is no file {parsed.location}"
            raise InvalidInput(msg)
        with _saver("langgraph.checkpoint.sqlite", "SqliteSaver").from_conn_string(parsed.location) as saver:
            yield _sqlite(saver.conn, reader, parsed.shown)
    else:
        with _saver("langgraph.checkpoint.postgres", "PostgresSaver").from_conn_string(parsed.location) as saver:
            saver.serde = reader
            yield _postgres(saver, reader, parsed.shown, schema)


def _saver(module: str, name: str) -> Any:
    try:
        return getattr(import_module(module), name)
    except ImportError as error:
        msg = f"reading its database needs {name}; {_EXTRA}"
        raise MissingDependency(msg) from error


def _nothing(shown: str) -> InvalidInput:
    return InvalidInput(f"{shown} has no checkpoints of langgraph's savers")


def _sqlite(connection: Any, reader: _Reader, shown: str) -> Source:
    connection.execute("PRAGMA query_only = ON")
    source = _Sqlite(connection, reader)
    columns = {row[1] for row in connection.execute("PRAGMA table_info(writes)")}
    if not columns or not connection.execute("PRAGMA table_info(checkpoints)").fetchall():
        raise _nothing(shown)
    if "task_path" not in columns:  # a file of an older SqliteSaver
        source.task_path = "''"
    return source


def _postgres(saver: Any, reader: _Reader, shown: str, schema: str | None) -> Source:
    execute = saver.conn.execute
    if schema is not None:
        execute("SELECT set_config('search_path', %s, false)", (schema,))
    execute("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY")
    (found,) = execute("SELECT to_regclass('checkpoint_migrations') AS found").fetchone().values()
    if found is None:
        raise _nothing(shown)
    (version,) = execute("SELECT max(v) AS v FROM checkpoint_migrations").fetchone().values()
    if version is None or version < len(saver.MIGRATIONS) - 1:
        msg = f"the tables of {shown} are of an older PostgresSaver; call its setup() once"
        raise InvalidInput(msg, version=version)
    return cast("Source", _Postgres(saver, reader))
