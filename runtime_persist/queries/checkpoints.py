"""Checkpoints with their writes and content. Content is read by address list, never by thread."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from sqlalchemy import Select, bindparam, literal_column, select, tuple_
from sqlalchemy.types import BigInteger

from runtime_persist.dialects.sql import among, bind, words
from runtime_persist.model.payload import PayloadRef
from runtime_persist.plan import Plan, Query, Row, many, one_or_none
from runtime_persist.queries.with_writes import row_and_writes
from runtime_persist.schema import blobs, checkpoints, heads, writes

LAST = "\U0010ffff"
"""Greater than every id: where a listing begins."""


class Content(Protocol):
    """What a read needs of the content store (the reader of :mod:`runtime_persist.contentstore`)."""

    owner: str

    def want(self, refs: Iterable[PayloadRef]) -> None:
        """Add references."""

    def missing(self) -> list[bytes]:
        """Return the addresses to read next; none when everything is there."""

    def give(self, asked: Iterable[bytes], found: Mapping[bytes, bytes], marked: Collection[bytes] = ()) -> None:
        """Take packed content by address, as it was read of those asked for, and which of it is marked as unused."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A checkpoint as it was read: its row and its writes."""

    row: Row
    writes: list[Row]


_C, _H = checkpoints.c, heads.c
_SHOWN = (
    _C.thread_id,
    _C.checkpoint_ns,
    _C.checkpoint_id,
    _C.parent_id,
    _C.run_id,
    _C.body,
    _C.metadata,
    _C.fingerprint,
    _C.orphan,
)

READ_HEAD = Query(
    "read_head",
    select(*_SHOWN)
    .join_from(
        heads,
        checkpoints,
        (_C.space == _H.space)
        & (_C.thread_id == _H.thread_id)
        & (_C.checkpoint_ns == _H.checkpoint_ns)
        & (_C.checkpoint_id == _H.checkpoint_id),
    )
    .where(
        _H.space == bind(_H.space),
        _H.thread_id == bind(_H.thread_id),
        _H.checkpoint_ns == bind(_H.checkpoint_ns),
    ),
)
READ_CHECKPOINT = Query(
    "read_checkpoint",
    select(*_SHOWN).where(
        _C.space == bind(_C.space),
        _C.thread_id == bind(_C.thread_id),
        _C.checkpoint_ns == bind(_C.checkpoint_ns),
        _C.checkpoint_id == bind(_C.checkpoint_id),
        _C.hidden == literal_column("0"),
    ),
)
CHECKPOINT_EXISTS = Query(
    "checkpoint_exists",
    select(_C.checkpoint_ns).where(
        _C.space == bind(_C.space),
        _C.thread_id == bind(_C.thread_id),
        _C.checkpoint_id == bind(_C.checkpoint_id),
    ),
)


def _page(*conditions: Any) -> Select[Any]:
    cursor = tuple_(words("after_id"), words("after_thread"), words("after_ns"))
    return (
        select(*_SHOWN)
        .where(
            _C.space == bind(_C.space),
            _C.hidden == literal_column("0"),
            tuple_(_C.checkpoint_id, _C.thread_id, _C.checkpoint_ns) < cursor,
            *conditions,
        )
        .order_by(_C.checkpoint_id.desc(), _C.thread_id.desc(), _C.checkpoint_ns.desc())
        .limit(bindparam("page_rows", type_=BigInteger()))
    )


LIST_ALL = Query("list_checkpoints", _page())
LIST_THREAD = Query("list_thread_checkpoints", _page(_C.thread_id == bind(_C.thread_id)))
LIST_NAMESPACE = Query(
    "list_namespace_checkpoints",
    _page(_C.thread_id == bind(_C.thread_id), _C.checkpoint_ns == bind(_C.checkpoint_ns)),
)
READ_WRITES = Query(
    "read_writes",
    select(
        writes.c.thread_id,
        writes.c.checkpoint_ns,
        writes.c.checkpoint_id,
        writes.c.task_id,
        writes.c.idx,
        writes.c.task_path,
        writes.c.channel,
        writes.c.value,
        writes.c.fingerprint,
    ).where(
        writes.c.space == bind(writes.c.space),
        writes.c.thread_id == bind(writes.c.thread_id),
        writes.c.checkpoint_ns == bind(writes.c.checkpoint_ns),
        among(writes.c.checkpoint_id, "checkpoint_ids"),
    ),
    each="checkpoint_ids",
)
READ_BLOBS = Query(
    "read_blobs",
    select(blobs.c.address, blobs.c.content, blobs.c.unused_us).where(
        blobs.c.space == bind(blobs.c.space),
        blobs.c.owner == bind(blobs.c.owner),
        among(blobs.c.address, "addresses"),
    ),
    each="addresses",
)

References = Callable[[Row, list[Row]], Iterable[PayloadRef]]
"""Tells what a checkpoint's row and writes refer to (the encoding belongs to the saver)."""


def one(
    space: str,
    thread_id: str,
    ns: str,
    checkpoint_id: str | None,
    content: Content,
    references: References,
) -> Plan[Stored | None]:
    """Read a checkpoint (None: the head of the namespace) with its writes and content."""
    row, own = yield from row_and_writes(space, thread_id, ns, checkpoint_id)
    if row is None:
        return None
    content.want(references(row, own))
    yield from fill(space, content)
    return Stored(row, own)


def body(space: str, thread_id: str, ns: str, checkpoint_id: str) -> Plan[bytes | None]:
    """Read only the body of a checkpoint."""
    row = yield from one_or_none(
        READ_CHECKPOINT,
        space=space,
        thread_id=thread_id,
        checkpoint_ns=ns,
        checkpoint_id=checkpoint_id,
    )
    return None if row is None else bytes(row["body"])


def exists(space: str, thread_id: str, checkpoint_id: str) -> Plan[bool]:
    """Return whether a checkpoint is stored, in any namespace of the thread."""
    row = yield from one_or_none(
        CHECKPOINT_EXISTS,
        space=space,
        thread_id=thread_id,
        checkpoint_id=checkpoint_id,
    )
    return row is not None


@dataclass(frozen=True, slots=True)
class Page:
    """Where a listing goes on: rows strictly below this place."""

    after_id: str = LAST
    after_thread: str = ""
    after_ns: str = ""


def page(
    space: str,
    thread_id: str | None,
    ns: str | None,
    place: Page,
    rows: int,
) -> Plan[list[Stored]]:
    """Read one page of checkpoints, newest first, with their writes; their content can be read afterwards."""
    query = LIST_ALL if thread_id is None else LIST_THREAD if ns is None else LIST_NAMESPACE
    found = yield from many(
        query,
        space=space,
        thread_id=thread_id,
        checkpoint_ns=ns,
        after_id=place.after_id,
        after_thread=place.after_thread,
        after_ns=place.after_ns,
        page_rows=rows,
    )
    return (yield from _with_writes(space, found))


def _with_writes(space: str, rows: Sequence[Row]) -> Plan[list[Stored]]:
    groups: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        groups.setdefault((row["thread_id"], row["checkpoint_ns"]), []).append(row["checkpoint_id"])
    by_checkpoint: dict[tuple[str, str, str], list[Row]] = {}
    for (thread_id, ns), ids in groups.items():
        found = yield from many(
            READ_WRITES,
            space=space,
            thread_id=thread_id,
            checkpoint_ns=ns,
            checkpoint_ids=ids,
        )
        for write in found:
            by_checkpoint.setdefault((thread_id, ns, write["checkpoint_id"]), []).append(write)
    return [
        Stored(row, by_checkpoint.get((row["thread_id"], row["checkpoint_ns"], row["checkpoint_id"]), []))
        for row in rows
    ]


def fill(space: str, content: Content) -> Plan[None]:
    """Read the content that is wanted: one statement, one more for each level of pages, more for a large value."""
    while wanted := content.missing():
        rows = yield from many(READ_BLOBS, space=space, owner=content.owner, addresses=wanted)
        found = {bytes(row["address"]): bytes(row["content"]) for row in rows}
        content.give(wanted, found, {bytes(row["address"]) for row in rows if row["unused_us"] is not None})


def head(space: str, thread_id: str, ns: str = "") -> Plan[str | None]:
    """Return the id of a namespace's head."""
    row = yield from one_or_none(READ_HEAD, space=space, thread_id=thread_id, checkpoint_ns=ns)
    return None if row is None else str(row["checkpoint_id"])


def stored(space: str, owner: str, addresses: list[bytes]) -> Plan[dict[bytes, bytes]]:
    """Read stored forms of content by address; what is missing is left out."""
    rows = yield from many(READ_BLOBS, space=space, owner=owner, addresses=addresses)
    return {bytes(row["address"]): bytes(row["content"]) for row in rows}
