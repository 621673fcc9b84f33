"""Drivers run plans on a database. Only the coordinator hands them jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime_persist.drivers.base import Driver, Hook, Job, Mode
from runtime_persist.errors import MissingDependency

if TYPE_CHECKING:
    from runtime_persist.dialects import DatabaseUrl, Dialect

__all__ = ["Driver", "Hook", "Job", "Mode", "open_driver"]


def open_driver(url: DatabaseUrl, dialect: Dialect, hook: Hook | None = None) -> Driver:
    """Open the driver of a dialect.

    Args:
        url: the parsed URL.
        dialect: writes the statements.
        hook: called with the name of each fault cut as it is reached (tests kill the process there).

    Raises:
        MissingDependency: PostgreSQL without asyncpg installed.
        DatabaseUnavailable: the database cannot be opened.

    """
    if dialect.name == "sqlite":
        from runtime_persist.drivers.sqlite import SqliteDriver

        return SqliteDriver(url, dialect, hook)
    try:
        from runtime_persist.drivers.postgresql import PostgresDriver
    except ModuleNotFoundError as error:
        msg = "PostgreSQL needs asyncpg; install runtime-persist[postgres]"
        raise MissingDependency(msg) from error
    return PostgresDriver(url, dialect, hook)
