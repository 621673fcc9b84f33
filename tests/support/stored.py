"""Everything a database holds, as bytes to search in."""

from pathlib import Path
from typing import Any

from runtime_persist.contentstore import unpack
from tests.fixtures.raw import PostgresRaw


def stored(raw: Any, url: str) -> bytes:
    """Everything the database holds: all rows, unpacked too, and the files."""
    found = []
    for rows in raw.dump().values():
        for row in rows:
            for _, cell in row:
                found.append(cell if isinstance(cell, bytes) else repr(cell).encode())
                if isinstance(cell, bytes):
                    try:
                        found.append(unpack(cell))
                    except Exception:  # noqa: BLE001, S112 (it was not packed)
                        continue
    if url.startswith("sqlite:///"):
        place = Path(url.removeprefix("sqlite:///"))
        beside = place.parent.glob(f"{place.name}*")  # also a folder of sockets, by which processes wake each other
        found += [path.read_bytes() for path in beside if path.is_file()]
    return b"\0".join(found)


def files(raw: Any) -> bytes:
    """The files of a PostgreSQL database with the server's write-ahead log (of SQLite: nothing beside ``stored``)."""
    if getattr(raw, "database", type(raw)) is not PostgresRaw:
        return b""
    raw.rows("CHECKPOINT")
    place = Path(raw.value("SELECT current_setting('data_directory') AS place"))
    own = raw.value("SELECT oid FROM pg_database WHERE datname = current_database()")
    found = [*(place / "base" / str(own)).iterdir(), *(place / "pg_wal").iterdir()]
    return b"\0".join(path.read_bytes() for path in found if path.is_file())
