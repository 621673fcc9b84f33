"""The sizes of content by address, without the content."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import func, select

from runtime_persist.dialects.sql import among, bind
from runtime_persist.plan import Plan, Query, many
from runtime_persist.schema import blobs

if TYPE_CHECKING:
    from collections.abc import Sequence

_B = blobs.c

READ_SIZES = Query(
    "read_content_sizes",
    select(_B.address, _B.size, func.length(_B.content).label("stored")).where(
        _B.space == bind(_B.space), _B.owner == bind(_B.owner), among(_B.address, "addresses")
    ),
    each="addresses",
)


def sizes(space: str, owner: str, addresses: Sequence[bytes]) -> Plan[dict[bytes, tuple[int, int]]]:
    """Read of each address the bytes as given and as stored; what is missing is not in the answer."""
    rows = yield from many(READ_SIZES, space=space, owner=owner, addresses=addresses)
    return {bytes(row["address"]): (row["size"], row["stored"]) for row in rows}
