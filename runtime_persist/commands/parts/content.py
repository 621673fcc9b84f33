"""Fragments that store content beside the row that refers to it.

What is there already is not written again. Only the mark of a collection goes from it: content that is sent is used.
A command stores its content in the order of its addresses: two that send the same would else wait for one another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import null

from runtime_persist.dialects.sql import bind, insert, now_us
from runtime_persist.plan import Call, Fragment, Inputs, Query
from runtime_persist.schema import blobs

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sqlalchemy import Executable

    from runtime_persist.model.payload import Blob

_ROWS = {"address": blobs.c.address.type, "size": blobs.c.size.type, "content": blobs.c.content.type}
_NAMES = ["space", "owner", "address", "size", "content", "created_us"]
_UNMARK: dict[str, Any] = {
    "index_elements": [blobs.c.space, blobs.c.owner, blobs.c.address],
    "set_": {"unused_us": null()},
    "where": blobs.c.unused_us.is_not(None),
}


def fragment(after: str) -> Fragment:
    """Return the fragment ``blobs``: each blob is inserted, or unmarked (row parameter of :func:`rows`)."""

    def build(inputs: Inputs) -> Executable:
        values = inputs.select(
            bind(blobs.c.space),
            bind(blobs.c.owner),
            inputs.row("address"),
            inputs.row("size"),
            inputs.row("content"),
            now_us(),
        )
        return insert(blobs).from_select(_NAMES, values).on_conflict_do_update(**_UNMARK)

    return Fragment("blobs", build, source=after, rows=_ROWS)


def rows(found: Iterable[Blob]) -> list[Mapping[str, Any]]:
    """Return blobs as the rows of the fragment, in the order in which all writers lock them."""
    return [{"address": blob.address, "size": blob.size, "content": blob.content} for blob in _ordered(found)]


def _ordered(found: Iterable[Blob]) -> list[Blob]:
    return sorted(found, key=lambda blob: blob.address)


STORE_BLOB = Query(
    "store_blob",
    insert(blobs)
    .values(
        space=bind(blobs.c.space),
        owner=bind(blobs.c.owner),
        address=bind(blobs.c.address),
        size=bind(blobs.c.size),
        content=bind(blobs.c.content),
        created_us=now_us(),
    )
    .on_conflict_do_update(**_UNMARK),
)


def store(space: str, owner: str, found: Iterable[Blob]) -> list[Call]:
    """Return the statements that store all blobs of a cold command, in the order in which all writers lock them."""
    return [
        Call(
            STORE_BLOB,
            {"space": space, "owner": owner, "address": b.address, "size": b.size, "content": b.content},
        )
        for b in _ordered(found)
    ]
