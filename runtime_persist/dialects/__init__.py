"""The only place that says sqlite or postgresql."""

from __future__ import annotations

from runtime_persist.dialects.base import Compiled, CompiledBundle, Dialect
from runtime_persist.dialects.postgresql import PostgresDialect
from runtime_persist.dialects.sqlite import SqliteDialect
from runtime_persist.dialects.url import DatabaseUrl, parse_url

__all__ = [
    "Compiled",
    "CompiledBundle",
    "DatabaseUrl",
    "Dialect",
    "PostgresDialect",
    "SqliteDialect",
    "dialect_of",
    "parse_url",
]

_DIALECTS: dict[str, type[Dialect]] = {"sqlite": SqliteDialect, "postgresql": PostgresDialect}


def dialect_of(url: DatabaseUrl, schema: str | None = None) -> Dialect:
    """Return the dialect of a parsed URL."""
    return _DIALECTS[url.dialect](schema)
