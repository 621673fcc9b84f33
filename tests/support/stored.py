"""Everything a database holds, as bytes to search in."""

from pathlib import Path
from typing import Any

from runtime_persist.contentstore import unpack


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
        found += [path.read_bytes() for path in place.parent.glob(f"{place.name}*")]
    return b"\0".join(found)
