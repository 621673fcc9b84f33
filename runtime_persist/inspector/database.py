"""Which database is looked at: its version, and what is known to be wrong with that version."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict

from runtime_persist.queries import database as queries

if TYPE_CHECKING:
    from runtime_persist.engine import Engine, Flow


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
    return DatabaseView(
        dialect=engine.url.dialect,
        version=version,
        url=engine.url.shown,
        warning=engine.dialect.known_fault(version),
    )
