"""Collecting content that nobody refers to any more.

All references of the space are read as of one moment. Content that none of them names is marked; what was marked long
enough before such a moment, and is named by none then either, is removed. Why that never takes what somebody is about
to refer to: ARCHITECTURE, Content.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from runtime_persist.adapters.workflow import encoding
from runtime_persist.commands.collect_content import CollectContent
from runtime_persist.contentstore import unpack
from runtime_persist.errors import CheckpointCorrupt, InvalidInput
from runtime_persist.model import limits
from runtime_persist.model.ids import new_id
from runtime_persist.model.payload import SEGMENT, PayloadRef, Piece, pieces_of
from runtime_persist.plan import Plan, Row, many
from runtime_persist.queries import references
from runtime_persist.queries.checkpoints import READ_BLOBS

if TYPE_CHECKING:
    from runtime_persist.adapters.workflow.core import SaverContext
    from runtime_persist.coordinator import CommitReceipt
    from runtime_persist.engine import Engine, Flow

_HOUR_US = 3_600_000_000
_PAGES_AT_ONCE = 64


@dataclass(slots=True)
class CollectedContent:
    """What one collection did.

    Attributes:
        rows: rows that were searched for references (checkpoints, writes, runs, operations).
        scanned: pieces of content that were looked at.
        marked: that nobody refers to, found so for the first time.
        unmarked: that were marked before, and are referred to.
        waiting: that were marked before, and not long enough ago.
        removed: that were removed.
        removed_bytes: what those were before compression.

    """

    rows: int = 0
    scanned: int = 0
    marked: int = 0
    unmarked: int = 0
    waiting: int = 0
    removed: int = 0
    removed_bytes: int = 0


@dataclass(frozen=True, slots=True)
class CollectProgress:
    """How far a collection is: rows done, and in all."""

    done: int
    total: int


Told = Callable[[CollectProgress], None]


def collect(saver: SaverContext, hours: float, progress: Told) -> Flow[CollectedContent]:
    """Mark content that nobody refers to, and remove what has been marked for that many hours."""
    window_us = _hours_us(hours)
    looked = yield from look(saver, progress)
    return (yield from settle(saver, looked, window_us, progress))


def look(saver: SaverContext, progress: Told) -> Flow[Look]:
    """Read all references of this moment (raises CheckpointCorrupt, UnknownFormat: one of them cannot be read)."""
    engine = saver.core.engine
    looked: Look = yield engine.coordinator.read("read_references", lambda: _look(engine, progress), snapshot=True)
    return looked


def settle(saver: SaverContext, looked: Look, window_us: int, progress: Told) -> Flow[CollectedContent]:
    """Go through all content after a look at what refers to it, a page a transaction."""
    engine = saver.core.engine
    report = CollectedContent(rows=looked.size.referring)
    walk, after, full = references.BLOBS, references.BLOBS.start, True
    while full:
        rows: Sequence[Row] = yield engine.coordinator.read(
            "page_of_blobs", partial(walk.page, engine.space, after, limits.COLLECT_ROWS)
        )
        yield from _page_of_content(engine, looked, rows, window_us, report)
        report.scanned += len(rows)
        progress(CollectProgress(looked.size.referring + report.scanned, looked.total(report.scanned)))
        full = len(rows) == limits.COLLECT_ROWS
        after = walk.place(rows[-1]) if full else after
    return report


def _hours_us(hours: object) -> int:
    if isinstance(hours, int | float) and limits.COLLECT_HOURS_MIN <= hours <= limits.COLLECT_HOURS_MAX:
        return int(hours * _HOUR_US)
    msg = f"hours must be a number from {limits.COLLECT_HOURS_MIN:g} to {limits.COLLECT_HOURS_MAX:g}, not {hours!r}"
    raise InvalidInput(msg, hours=repr(hours))


def _page_of_content(
    engine: Engine, looked: Look, rows: Sequence[Row], window_us: int, report: CollectedContent
) -> Flow[None]:
    """Commit what a page of content needs."""
    unused: list[bytes] = []
    used: list[bytes] = []
    for row in rows:
        address, marked_us = bytes(row["address"]), row["unused_us"]
        if row["owner"] != engine.owner:
            continue
        if address in looked.addresses:
            used += [address] if marked_us is not None else []
        elif marked_us is None:
            unused += [address] if row["created_us"] <= looked.size.now_us else []
        elif marked_us <= looked.size.now_us - window_us:
            unused.append(address)
        else:
            report.waiting += 1
    if not unused and not used:
        return
    receipt: CommitReceipt = yield engine.coordinator.commit(
        CollectContent(
            space=engine.space,
            command_id=new_id(),
            owner=engine.owner,
            seen_us=looked.size.now_us,
            window_us=window_us,
            unused=tuple(unused),
            used=tuple(used),
        )
    )
    names = {one.name for one in fields(report)}
    for name, count in receipt.result.items():
        if name in names:
            setattr(report, name, getattr(report, name) + int(count))


# --- what is referred to --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Look:
    """The addresses that a space referred to at one moment, and the size it had then."""

    size: references.Size
    addresses: set[bytes]

    def total(self, scanned: int) -> int:
        """Return how many rows there are to go through, as far as it is known."""
        return self.size.referring + max(scanned, self.size.blobs)


def _look(engine: Engine, progress: Told) -> Plan[Look]:
    looked = Look((yield from references.size(engine.space)), set())
    done = 0
    kinds: Iterable[tuple[references.Walk, Callable[[Row], Iterable[PayloadRef]]]] = (
        (references.CHECKPOINTS, lambda row: encoding.references(row, [])),
        (references.WRITES, lambda row: [encoding.write_ref(row)]),
        (references.RUNS, partial(_values, names=references.RUN_VALUES)),
        (references.OPERATIONS, partial(_values, names=references.OPERATION_VALUES)),
    )
    for walk, refs_of in kinds:
        after, full = walk.start, True
        while full:
            rows = yield from walk.page(engine.space, after, limits.PAGE_ROWS)
            pieces = [piece for row in rows for ref in refs_of(row) for piece in ref.stored()]
            yield from _add(engine, looked.addresses, pieces)
            done += len(rows)
            progress(CollectProgress(done, looked.total(0)))
            full = len(rows) == limits.PAGE_ROWS
            after = walk.place(rows[-1]) if full else after
    return looked


def _values(row: Mapping[str, object], names: Iterable[str]) -> Iterator[PayloadRef]:
    for name in names:
        data = row[name]
        if data is not None:
            yield PayloadRef.decoded(bytes(data))  # type: ignore[call-overload]  # a column of bytes


def _add(engine: Engine, addresses: set[bytes], pieces: Iterable[Piece]) -> Plan[None]:
    """Add what some pieces name, and what their pages name; a page is read once."""
    pages: set[bytes] = set()

    def note(found: Iterable[Piece]) -> None:
        for address, depth in found:
            if depth > SEGMENT and address not in addresses:
                pages.add(address)
            if depth >= SEGMENT:
                addresses.add(address)

    note(pieces)
    while pages:
        asked = sorted(islice(pages, _PAGES_AT_ONCE))
        pages.difference_update(asked)
        rows = yield from many(READ_BLOBS, space=engine.space, owner=engine.owner, addresses=asked)
        stored = {bytes(row["address"]): bytes(row["content"]) for row in rows}
        for address in asked:
            note(_page(engine, address, stored.get(address)))


def _page(engine: Engine, address: bytes, stored: bytes | None) -> list[Piece]:
    content = None if stored is None else unpack(stored)
    if content is None or engine.coordinator.keys.address(engine.owner, content) != address:
        msg = f"a page of content (address {address.hex()}) is {'missing' if content is None else 'damaged'}"
        raise CheckpointCorrupt(msg, address=address.hex())
    return pieces_of(content)
