"""A recovery bundle in memory: the rows of one moment, each part hashed; values are loaded when they are asked for."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from runtime_persist.adapters.workflow import encoding
from runtime_persist.contentstore import unpack
from runtime_persist.engine.payloads import loaded
from runtime_persist.errors import BundleTooLarge, CheckpointCorrupt, RunNotFound
from runtime_persist.inspector.bundles import content
from runtime_persist.inspector.bundles.manifest import (
    FORMAT,
    FORMATS,
    Definition,
    Entry,
    Manifest,
    Redaction,
    Source,
    row_line,
)
from runtime_persist.inspector.database import load_database
from runtime_persist.model.budgets import EMPTY
from runtime_persist.model.payload import SEGMENT, Piece
from runtime_persist.queries import bundles as queries
from runtime_persist.queries import checkpoints as checkpoint_queries
from runtime_persist.queries import spaces
from runtime_persist.schema.migrate import VERSION

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from langgraph.checkpoint.serde.base import SerializerProtocol

    from runtime_persist.engine import Engine, Flow
    from runtime_persist.model.payload import PayloadRef
    from runtime_persist.plan import Row

ROWS_MAX = 200_000
"""Rows of one part, unless asked otherwise."""
_AT_ONCE = 128


@dataclass(frozen=True, slots=True)
class RecoveryBundle:
    """Everything that is stored about a run, as it was together at one moment.

    Attributes:
        manifest: what it is of, and the hash of each part.
        rows: by part (``runtime_persist/queries/bundles.py``), as the database gave them.
        contents: content by address, of a bundle that came out of a file (empty: it is in the database).

    """

    manifest: Manifest
    rows: Mapping[str, Sequence[Row]]
    contents: Mapping[bytes, bytes]

    @property
    def run(self) -> Row:
        """The run's row, with the moment of the read as ``now_us``."""
        return {**self.rows["runs"][0], "now_us": self.manifest.read_us}

    def values(self) -> Iterator[content.Value]:
        """Give the references of all values, and where they stand."""
        return content.values(self.rows)

    def value(self, serde: SerializerProtocol, ref: PayloadRef, where: str) -> Any:
        """Load a value of a bundle that came out of a file.

        Raises:
            CheckpointCorrupt: its content is missing (it may have been left out), or is no value.
            UntrustedType, UnknownFormat: the serializer refuses it.

        """
        data = content.joined(ref, self.contents.__getitem__, where)
        return loaded(serde, ref.type, data, where)


def read_bundle(engine: Engine, run_id: str, *, rows_max: int = ROWS_MAX) -> Flow[RecoveryBundle]:
    """Read the bundle of a run in one snapshot.

    Raises:
        RunNotFound: there is no such run.
        BundleTooLarge: a part has more than ``rows_max`` rows.
        CheckpointCorrupt: the row of a checkpoint or write is not what was stored.

    """
    found: queries.Found | None = yield engine.coordinator.read(
        "read_recovery_bundle", lambda: queries.of_run(engine.space, run_id, rows_max), snapshot=True
    )
    if found is None:
        msg = f"there is no run {run_id!r} in space {engine.space!r}"
        raise RunNotFound(msg, run_id=run_id)
    for name, rows in found.rows.items():
        if len(rows) > rows_max:
            msg = f"run {run_id} has more than {rows_max:,} rows of {name}; allow more with a larger limit"
            raise BundleTooLarge(msg, part=name, limit=rows_max)
    check_rows(found.rows)
    database = yield from load_database(engine)
    run = found.rows["runs"][0]
    registered = next((row["version"] for row in found.rows["graphs"]), None)
    before = yield from _imported_from(engine)
    source = Source(dialect=database.dialect, version=database.version, warning=database.warning)
    manifest = Manifest(
        format=FORMAT,
        formats=FORMATS,
        schema_version=VERSION,
        made_by=f"runtime-persist {version('runtime-persist')}",
        space=engine.space,
        run_id=run_id,
        thread_id=run["thread_id"],
        graph=run["graph"],
        definition=Definition(run=run["graph_version"], registered=registered),
        source=source if before is None else before.source,
        read_us=found.now_us,
        content="none",
        redaction=Redaction(redacted=False, starred=0, withheld=0) if before is None else before.redaction,
        entries=tuple(rows_entry(name, rows) for name, rows in sorted(found.rows.items())),
    )
    return RecoveryBundle(manifest, found.rows, {})


def _imported_from(engine: Engine) -> Flow[Manifest | None]:
    """Return the manifest of the bundle that the space was imported from (None: from none)."""
    if engine.coordinator.as_of_us is None:
        return None
    row = yield engine.coordinator.read("read_space", lambda: spaces.space(engine.space))
    return Manifest.model_validate_json(row["manifest"])


def rows_bytes(name: str, rows: Sequence[Row]) -> bytes:
    """Return the bytes of a part: a row a line."""
    return b"".join(row_line(name, row) for row in rows)


def rows_entry(name: str, rows: Sequence[Row]) -> Entry:
    """Return the entry of a part."""
    return entry_of(f"rows/{name}.jsonl", rows_bytes(name, rows), len(rows))


def entry_of(name: str, data: bytes, rows: int | None = None) -> Entry:
    """Return the entry of some bytes."""
    return Entry(name=name, size=len(data), sha256=hashlib.sha256(data).hexdigest(), rows=rows)


def check_rows(rows: Mapping[str, Sequence[Row]]) -> None:
    """Compare rows with what they say of themselves and of one another.

    Raises:
        CheckpointCorrupt: a part is missing, or a row is not what was stored; ``part`` says where.

    """
    if len(rows["runs"]) != 1:
        _wrong("runs", f"there are {len(rows['runs'])} runs instead of one")
    run = rows["runs"][0]
    seqs = [row["seq"] for row in rows["events"]]
    if seqs != list(range(1, run["event_seq"] + 1)):
        _wrong("events", f"the run has {run['event_seq']} events, numbered without gaps; there are {len(seqs)}")
    if len(rows["attempts"]) != run["attempt_no"]:
        _wrong("attempts", f"the run has {run['attempt_no']} attempts; there are {len(rows['attempts'])}")
    if len(rows["domains"]) != run["domains_opened"]:
        _wrong("domains", f"the run opened {run['domains_opened']} domains; there are {len(rows['domains'])}")
    _check_tickets(run, rows["tickets"])
    _check_operations(rows)
    _check_checkpoints(rows)


def _check_tickets(run: Row, tickets: Sequence[Row]) -> None:
    for name in EMPTY:  # such as loops_reserved
        kind, _, state = name.rpartition("_")
        counted = sum(row[kind] for row in tickets if row["state"] == state)
        if counted != run[name]:
            _wrong("tickets", f"the run counts {run[name]} as {name}; its tickets come to {counted}")


def _check_operations(rows: Mapping[str, Sequence[Row]]) -> None:
    tries: dict[str, int] = {}
    for row in rows["operation_tries"]:
        tries[row["operation_id"]] = tries.get(row["operation_id"], 0) + 1
    for row in rows["operations"]:
        if tries.pop(row["operation_id"], 0) != row["try_no"] and row["copied_from"] is None:
            _wrong("operation_tries", f"operation {row['operation_id']} has {row['try_no']} tries; some are missing")
    if tries:
        _wrong("operations", f"operation {min(tries)} is missing, of which there are tries")


def _check_checkpoints(rows: Mapping[str, Sequence[Row]]) -> None:
    there = {(row["checkpoint_ns"], row["checkpoint_id"]) for row in rows["checkpoints"]}
    for head in rows["heads"]:
        if (head["checkpoint_ns"], head["checkpoint_id"]) not in there:
            _wrong("checkpoints", f"checkpoint {head['checkpoint_id']}, the head of its namespace, is missing")
    for row in rows["checkpoints"]:
        try:
            encoding.references(row, [])
        except CheckpointCorrupt as error:
            _wrong("checkpoints", error.message)
        except (ValueError, TypeError) as error:
            _wrong("checkpoints", f"the manifest of checkpoint {row['checkpoint_id']} cannot be read: {error}")
    for row in rows["writes"]:
        try:
            encoding.write_ref(row)
        except CheckpointCorrupt as error:
            _wrong("writes", error.message)
        except (ValueError, TypeError) as error:
            _wrong("writes", f"a write of checkpoint {row['checkpoint_id']} cannot be read: {error}")


def _wrong(part: str, what: str) -> None:
    msg = f"{part}: {what}"
    raise CheckpointCorrupt(msg, part=part)


def load_contents(
    engine: Engine, bundle: RecoveryBundle, bytes_max: int, progress: Callable[[int, int], None]
) -> Flow[dict[bytes, bytes]]:
    """Read all content that the rows of a bundle refer to, verified against its addresses.

    It is read behind the snapshot: content never changes, and what a row named is there for hours after the row went.

    Args:
        engine: the database that the bundle was read from.
        bundle: the bundle.
        bytes_max: at most so many bytes.
        progress: is told how many pieces of content were read of how many that are known yet.

    Raises:
        BundleTooLarge: it is more.
        CheckpointCorrupt: some is missing, or does not have the hash of its address.

    """
    found: dict[bytes, bytes] = {}
    depths: dict[bytes, int] = {}
    where: dict[bytes, str] = {}
    for value in bundle.values():
        for piece in value.ref.stored():
            depths[piece.data] = max(depths.get(piece.data, SEGMENT), piece.depth)
            where.setdefault(piece.data, value.said())
    size = 0
    queue = list(depths)
    while queue:
        asked, queue = queue[:_AT_ONCE], queue[_AT_ONCE:]
        stored: dict[bytes, bytes] = yield engine.coordinator.read(
            "read_content", partial(checkpoint_queries.stored, engine.space, engine.owner, asked)
        )
        for address in asked:
            found[address] = _opened(engine, stored.get(address), address, where[address])
            size += len(found[address])
            if size > bytes_max:
                msg = f"the content of run {bundle.manifest.run_id} has more than {bytes_max:,} bytes"
                raise BundleTooLarge(msg, limit=bytes_max)
        pages = [Piece(address, depths[address]) for address in asked]
        for piece in content.deeper(pages, found.__getitem__, set(depths)):
            if piece.data not in depths:
                depths[piece.data] = piece.depth
                where[piece.data] = "a page"
                queue.append(piece.data)
        progress(len(found), len(depths))
    return found


def _opened(engine: Engine, stored: bytes | None, address: bytes, where: str) -> bytes:
    if stored is None:
        msg = f"content of {where} is missing (address {address.hex()})"
        raise CheckpointCorrupt(msg, address=address.hex(), where=where)
    try:
        data = unpack(stored)
    except CheckpointCorrupt as error:
        msg = f"content of {where} is damaged (address {address.hex()}): {error.message}"
        raise CheckpointCorrupt(msg, address=address.hex(), where=where) from error
    if engine.coordinator.keys.address(engine.owner, data) != address:
        msg = f"content of {where} does not have the hash of its address {address.hex()}"
        raise CheckpointCorrupt(msg, address=address.hex(), where=where)
    return data
