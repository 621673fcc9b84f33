"""What a thread holds, by size: which channel grew is seen without loading any value of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langgraph.checkpoint.base import writes_sort_key
from langgraph.checkpoint.serde.base import SerializerProtocol
from pydantic import BaseModel, ConfigDict

from runtime_persist.adapters.workflow import encoding
from runtime_persist.engine import payloads
from runtime_persist.engine.payloads import loaded
from runtime_persist.errors import CheckpointCorrupt, InvalidInput, RuntimePersistError, ThreadNotFound
from runtime_persist.inspector.content_sizes import Content, load_content_sizes
from runtime_persist.model.ids import thread_id_of
from runtime_persist.model.payload import PayloadRef
from runtime_persist.queries import threads as queries

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from runtime_persist.engine import Engine, Flow
    from runtime_persist.model.payload import Piece
    from runtime_persist.plan import Row

HISTORY = 20
"""Checkpoints that are compared, unless asked otherwise."""


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True)


class ChannelSize(_Frozen):
    """One channel of a checkpoint.

    Attributes:
        channel: its name.
        type: the serializer's tag; with the cipher's name behind a plus when it is encrypted.
        bytes: its serialized size.
        before: the same, in the oldest of the checkpoints looked at; None: it had no value there.

    """

    channel: str
    type: str
    bytes: int
    before: int | None


class Shared(_Frozen):
    """What is stored of the values of several checkpoints, which share what is equal.

    Attributes:
        value_bytes: of all values of all checkpoints, as if each stored its own.
        unique_bytes: of the different content that they are put together from.
        stored_bytes: what that takes where it lies, compressed (None: in a bundle nothing is).
        ratio: value_bytes by unique_bytes (1: nothing is shared).

    """

    value_bytes: int
    unique_bytes: int
    stored_bytes: int | None
    ratio: float


class WriteSize(_Frozen):
    """One pending write: what a task that is done stored, or what it asks (channel ``__interrupt__``)."""

    task_id: str
    idx: int
    channel: str
    type: str
    bytes: int


class CheckpointSize(_Frozen):
    """One checkpoint: the serialized bytes of its channels together, and of its metadata.

    Attributes:
        grew: by how many bytes its values are larger than those of the one before it (None: that is not looked at).
        new_bytes: of content that none of the older ones looked at names: what this step had to store.

    """

    checkpoint_id: str
    parent_id: str | None
    run_id: str | None
    epoch: int | None
    bytes: int
    grew: int | None
    new_bytes: int
    metadata_bytes: int
    created_us: int


class NamespaceView(_Frozen):
    """One namespace of a thread: the channels and writes of one checkpoint, and the ones before it, newest first.

    Attributes:
        shared: what the values of all these checkpoints take together.

    """

    checkpoint_ns: str
    channels: list[ChannelSize]
    writes: list[WriteSize]
    checkpoints: list[CheckpointSize]
    shared: Shared


class ThreadView(_Frozen):
    """A thread by size; the root namespace comes first."""

    thread_id: str
    namespaces: list[NamespaceView]


def load_thread(
    engine: Engine,
    thread_id: str,
    *,
    ns: str | None = None,
    checkpoint_id: str | None = None,
    history: int = HISTORY,
) -> Flow[ThreadView]:
    """Read a thread by size: values and metadata are neither read nor loaded.

    Args:
        engine: the database.
        thread_id: the thread.
        ns: only this namespace ("" is the root).
        checkpoint_id: as of this checkpoint (None: the newest).
        history: compare with so many checkpoints back.

    Raises:
        ThreadNotFound: nothing is stored there.
        CheckpointCorrupt, UnknownFormat: a checkpoint's manifest cannot be read.

    """
    thread_id = thread_id_of(thread_id)
    rows = history_of(history)
    found: list[queries.Outline] = yield engine.coordinator.read(
        "read_thread",
        lambda: queries.outline(engine.space, thread_id, ns, checkpoint_id, rows),
        snapshot=True,
    )
    if not found:
        raise nothing_of(thread_id, ns, checkpoint_id, f"space {engine.space!r}")
    content: Content = yield from load_content_sizes(engine, _named(found, thread_id))
    return view(thread_id, found, lambda _: content)


def view(thread_id: str, found: list[queries.Outline], sizes: Callable[[set[Piece]], Content]) -> ThreadView:
    """Return outlines by size; ``sizes`` gives those of the content that they name."""
    content = sizes(_named(found, thread_id))
    return ThreadView(thread_id=thread_id, namespaces=[_namespace(one, thread_id, content) for one in found])


def _named(found: list[queries.Outline], thread_id: str) -> set[Piece]:
    rows = [row for one in found for row in one.checkpoints]
    return {piece for row in rows for ref in _refs(row, thread_id).values() for piece in ref.stored()}


def history_of(history: int) -> int:
    """Return how many checkpoints are compared (raises InvalidInput)."""
    if history < 1:
        msg = f"history must be at least 1, got {history}"
        raise InvalidInput(msg, history=history)
    return history


def nothing_of(thread_id: str, ns: str | None, checkpoint_id: str | None, where: str) -> ThreadNotFound:
    """Return the error that nothing is stored there."""
    what = [f"thread {thread_id!r}"]
    what += [] if ns is None else [f"namespace {ns!r}"]
    what += [] if checkpoint_id is None else [f"checkpoint {checkpoint_id}"]
    return ThreadNotFound(f"nothing is stored of {', '.join(what)} in {where}", thread_id=thread_id)


def load_value(
    engine: Engine,
    serde: SerializerProtocol,
    thread_id: str,
    channel: str,
    *,
    ns: str = "",
    checkpoint_id: str | None = None,
) -> Flow[Any]:
    """Load the value of one channel (its pending writes when the checkpoint has no value of it), and nothing else.

    Under a RawSerializer no class is needed for it.

    Raises:
        ThreadNotFound: there is no such checkpoint, or channel in it.
        CheckpointCorrupt, UntrustedType, IncompatibleClass, UnknownFormat: it cannot be loaded.

    """
    values = yield from load_bytes(engine, thread_id, channel, ns=ns, checkpoint_id=checkpoint_id)
    found = [loaded(serde, kind, data, f"channel {channel!r} of thread {thread_id!r}") for kind, data in values]
    return found[0] if len(found) == 1 else found


def load_bytes(
    engine: Engine, thread_id: str, channel: str, *, ns: str = "", checkpoint_id: str | None = None
) -> Flow[list[tuple[str, bytes]]]:
    """Return type tags and serialized bytes of a channel: of its value, or else of its pending writes.

    Raises:
        ThreadNotFound: there is no such checkpoint, or channel in it.
        CheckpointCorrupt: its content is missing or damaged.

    """
    thread_id = thread_id_of(thread_id)
    found: list[queries.Outline] = yield engine.coordinator.read(
        "read_thread", lambda: queries.outline(engine.space, thread_id, ns, checkpoint_id, 1), snapshot=True
    )
    refs = refs_of_channel(found, thread_id, channel, ns)
    where = f"channel {channel!r} of thread {thread_id!r}"
    values: list[tuple[str, bytes]] = []
    for ref in refs:
        stored: tuple[str, bytes] = yield from payloads.decode(engine, _Unloaded(), ref.encoded(), where)
        values.append(stored)
    return values


def refs_of_channel(found: list[queries.Outline], thread_id: str, channel: str, ns: str) -> list[PayloadRef]:
    """Return the reference to a channel's value, or to its pending writes (raises ThreadNotFound)."""
    refs: list[PayloadRef] = []
    for one in found:
        row = one.checkpoints[0]
        value = _refs(row, thread_id).get(channel)
        pending = [PayloadRef.decoded(write["value"]) for write in _ordered(one.writes) if write["channel"] == channel]
        refs += pending if value is None else [value]
    if not refs:
        msg = f"nothing is stored in channel {channel!r} of thread {thread_id!r} (namespace {ns!r})"
        raise ThreadNotFound(msg, thread_id=thread_id, channel=channel)
    return refs


class _Unloaded(SerializerProtocol):
    """Leaves values as the tags and bytes they are stored as."""

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """Refuse: nothing is stored by an inspector."""
        raise NotImplementedError

    def loads_typed(self, data: tuple[str, bytes]) -> tuple[str, bytes]:
        """Return what it is given."""
        return data


def _namespace(found: queries.Outline, thread_id: str, content: Content) -> NamespaceView:
    refs = [_refs(row, thread_id) for row in found.checkpoints]
    newest, oldest = refs[0], refs[-1]
    channels = [
        ChannelSize(
            channel=channel,
            type=ref.type,
            bytes=ref.size,
            before=oldest[channel].size if channel in oldest else None,
        )
        for channel, ref in sorted(newest.items(), key=lambda item: (-item[1].size, item[0]))
    ]
    steps, shared = _steps(found.checkpoints, refs, content)
    return NamespaceView(
        checkpoint_ns=found.checkpoint_ns,
        channels=channels,
        writes=[_write(row) for row in _ordered(found.writes)],
        checkpoints=steps,
        shared=shared,
    )


def _steps(
    rows: list[Row], refs: list[Mapping[str, PayloadRef]], content: Content
) -> tuple[list[CheckpointSize], Shared]:
    """Return the checkpoints (newest first) with what each added, and what all take together."""
    seen: set[PayloadRef | bytes] = set()
    made: list[CheckpointSize] = []
    before = None
    unique = stored = 0
    for row, one in zip(reversed(rows), reversed(refs), strict=True):
        size = sum(ref.size for ref in one.values())
        new = 0
        for ref in one.values():
            mine, packed = content.of(ref, seen)
            new += mine
            stored += packed
        made.append(
            CheckpointSize(
                **{key: row[key] for key in ("checkpoint_id", "parent_id", "run_id", "epoch", "metadata_bytes")},
                created_us=row["created_us"],
                bytes=size,
                grew=None if before is None else size - before,
                new_bytes=new,
            )
        )
        before = size
        unique += new
    total = sum(one.bytes for one in made)
    ratio = round(total / unique, 2) if unique else 1.0
    packed_bytes = stored if content.compressed else None
    return made[::-1], Shared(value_bytes=total, unique_bytes=unique, stored_bytes=packed_bytes, ratio=ratio)


def _write(row: Row) -> WriteSize:
    ref = PayloadRef.decoded(row["value"])
    return WriteSize(task_id=row["task_id"], idx=row["idx"], channel=row["channel"], type=ref.type, bytes=ref.size)


def _ordered(writes: list[Row]) -> list[Row]:
    return sorted(writes, key=lambda row: writes_sort_key(row["task_path"], row["task_id"], row["idx"]))


def _refs(row: Row, thread_id: str) -> Mapping[str, PayloadRef]:
    where = f"the manifest of checkpoint {row['checkpoint_id']} (thread {thread_id!r})"
    try:
        return encoding.refs_of(row["body"])
    except RuntimePersistError as error:
        raise type(error)(f"{where}: {error.message}", **error.details) from error
    except Exception as error:
        raise CheckpointCorrupt(f"{where} cannot be read: {type(error).__name__}", thread_id=thread_id) from error
