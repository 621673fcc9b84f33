"""Statements that a saver sends: on SQLite by the connections' own trace, on PostgreSQL at a proxy."""

from __future__ import annotations

import contextlib
import sqlite3
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

from runtime_persist.testing.proxy import PostgresProxy

if TYPE_CHECKING:
    from collections.abc import Iterator


class Statements:
    """What was sent since the last look."""

    def __init__(self, proxy: PostgresProxy | None = None) -> None:
        self._proxy = proxy
        self.texts: list[str] = []
        self.steps = 0  # of SQLite's virtual machine: the work of a statement, whatever the machine

    def reset(self) -> None:
        self.texts.clear()
        self.steps = 0
        if self._proxy is not None:
            self._proxy.reset()

    def step(self) -> int:
        """Count one step (SQLite calls it, and goes on when it returns 0)."""
        self.steps += 1
        return 0

    @property
    def statements(self) -> int:
        """Statements executed (in SQLite without those that begin and end transactions)."""
        if self._proxy is not None:
            return len(self._proxy.statements)
        return sum(not text.startswith(("BEGIN", "COMMIT", "SAVEPOINT", "RELEASE", "PRAGMA")) for text in self.texts)

    @property
    def commits(self) -> int:
        """Round trips to the server; in SQLite, which has none, writing transactions."""
        if self._proxy is not None:
            return self._proxy.round_trips
        return sum(text.startswith("BEGIN IMMEDIATE") for text in self.texts)


@contextlib.contextmanager
def on_sqlite() -> Iterator[Statements]:
    """Count on all SQLite connections that are opened inside the block."""
    counted = Statements()
    connect = sqlite3.connect

    def traced(*given, **named):
        connection = connect(*given, **named)
        connection.set_trace_callback(counted.texts.append)
        connection.set_progress_handler(counted.step, 1)
        return connection

    sqlite3.connect = traced
    try:
        yield counted
    finally:
        sqlite3.connect = connect


@contextlib.contextmanager
def on_postgresql(where: str) -> Iterator[tuple[str, Statements]]:
    """Yield the URL to open instead of ``where``, and the counter."""
    parts = urlsplit(where)
    host = parts.hostname or parse_qs(parts.query)["host"][0]
    port = parts.port or int(parse_qs(parts.query)["port"][0])
    with PostgresProxy(host, port) as proxy:
        yield proxy.dsn(where), Statements(proxy)


@contextlib.contextmanager
def counting(where: str) -> Iterator[tuple[str, Statements]]:
    """Yield where to open the saver, and what counts its statements."""
    if where.startswith("postgres"):
        with on_postgresql(where) as found:
            yield found
    else:
        with on_sqlite() as counted:
            yield where, counted
