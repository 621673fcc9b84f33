"""Which database is looked at: its version, and what is known to be wrong with that version."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict

from runtime_persist.drivers.sqlite_wal import has_wal_reset_fault
from runtime_persist.queries import database as queries

if TYPE_CHECKING:
    from runtime_persist.engine import Engine, Flow

_WAL_RESET = "has SQLite's WAL-reset fault: use 3.51.3 or later (3.50.7, 3.44.6) where processes share a file"


class DatabaseView(BaseModel):
    """The database behind what is shown.

    Attributes:
        dialect: ``sqlite`` or ``postgresql``.
        version: of the server, or of the SQLite linked into this process.
        url: where it is, without a password.
        warning: what is known to be wrong with that version, None when nothing is.

    """

    model_config = ConfigDict(frozen=True)

    dialect: str
    version: str
    url: str
    warning: str | None = None


def load_database(engine: Engine) -> Flow[DatabaseView]:
    """Ask the database for its version."""
    version: str = yield engine.coordinator.read("read_version", queries.version)
    faulty = engine.url.dialect == "sqlite" and has_wal_reset_fault(_numbers(version))
    return DatabaseView(
        dialect=engine.url.dialect,
        version=version,
        url=engine.url.shown,
        warning=_WAL_RESET if faulty else None,
    )


def _numbers(version: str) -> tuple[int, int, int]:
    major, minor, patch, *_ = (*map(int, version.split(".")), 0, 0)
    return major, minor, patch
