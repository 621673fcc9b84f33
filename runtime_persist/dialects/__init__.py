"""The only place that says sqlite or postgresql."""

from __future__ import annotations

from functools import lru_cache

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
SCHEMAS_KEPT = 64
"""So many dialects with their compiled statements (less than 1 MB each) are kept in a process, the last ones used."""


def dialect_of(url: DatabaseUrl, schema: str | None = None) -> Dialect:
    """Return the dialect of a parsed URL; engines on the same schema share it, and what it has compiled."""
    return _shared(url.dialect, schema)


@lru_cache(SCHEMAS_KEPT)
def _shared(name: str, schema: str | None) -> Dialect:
    return _DIALECTS[name](schema)
