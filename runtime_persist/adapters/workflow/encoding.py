"""How checkpoints and writes lie in their rows.

A checkpoint's body is the checkpoint without its values, plus a manifest: channel -> payload reference. Channels
that did not change carry their reference over from the parent's manifest (when it holds the same version), so a
put stores only what changed. Values are always the serializer's bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import ormsgpack
from langgraph.checkpoint.base import (
    EXCLUDED_METADATA_KEYS,
    WRITES_IDX_MAP,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_checkpoint_metadata,
    writes_sort_key,
)

from runtime_persist.adapters.workflow.values import error_text, serializer_of
from runtime_persist.commands.parts.checkpoint_rows import CheckpointRow
from runtime_persist.commands.parts.write_rows import TaskWrite, TaskWrites
from runtime_persist.contentstore import ContentReader, ContentWriter, pack, unpack
from runtime_persist.contentstore.cache import NEVER, recent
from runtime_persist.engine.payloads import dumped
from runtime_persist.engine.payloads import loaded as load_value
from runtime_persist.errors import CheckpointCorrupt, UnknownFormat
from runtime_persist.model import limits
from runtime_persist.model.keys import fingerprint
from runtime_persist.model.payload import PayloadRef

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.serde.base import SerializerProtocol

    from runtime_persist.plan import Row
    from runtime_persist.queries.checkpoints import Stored

NULL_TASK = "00000000-0000-0000-0000-000000000000"
"""The task LangGraph stores a person's answer under, until the task that asked takes it up."""
RESUME = "__resume__"
INPUT = "__start__"

_FORMAT = 2
SENDS_IN_PARENT_BELOW = 4
"""Checkpoints of an older format version keep their pending sends among their parent's writes."""
_SECRET_WORDS = ("key", "token", "secret", "password", "auth", "credential")
_RUN_NAMES = frozenset({"run_id"})
"""LangGraph finds its way back into a run by these, so ``metadata_keys`` leaves them in."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """Where the values of a checkpoint are.

    Attributes:
        versions: by channel.
        refs: references by channel.
        seen: when all their content was last sent, or read without a mark (seconds since 1970). References are
            carried over to another checkpoint only while that is recent.

    """

    versions: Mapping[str, Any] = field(default_factory=dict)
    refs: Mapping[str, PayloadRef] = field(default_factory=dict)
    seen: float = NEVER

    @property
    def fresh(self) -> bool:
        """Return whether its references may be carried over."""
        return recent(self.seen)

    def carried(self, versions: Mapping[str, Any], given: Collection[str]) -> dict[str, PayloadRef]:
        """Return the references of channels that have the same version in ``versions`` and no value ``given``."""
        return {
            channel: self.refs[channel]
            for channel, version in versions.items()
            if channel not in given and channel in self.refs and self.versions.get(channel) == version
        }


class StoredMetadata(NamedTuple):
    """Metadata as it is stored, and its ``run_id``: what delete_for_runs goes by."""

    data: bytes
    run_ref: str | None


class Place(NamedTuple):
    """What a config addresses."""

    thread_id: str
    ns: str
    checkpoint_id: str | None

    def config(self, checkpoint_id: str) -> RunnableConfig:
        """Return the normal config of a checkpoint here: exactly the three keys."""
        return {
            "configurable": {
                "thread_id": self.thread_id,
                "checkpoint_ns": self.ns,
                "checkpoint_id": checkpoint_id,
            },
        }


def serialized(
    serde: SerializerProtocol,
    checkpoint: Checkpoint,
    channels: Iterable[str],
    max_bytes: int,
) -> dict[str, tuple[str, bytes]]:
    """Serialize the values of some channels now, before anything is waited for: the graph may go on changing them."""
    values = checkpoint["channel_values"]
    return {
        channel: dumped(serializer_of(serde, channel), values[channel], channel, max_bytes, channel=channel)
        for channel in channels
        if channel in values
    }


def changed_channels(
    checkpoint: Checkpoint,
    new_versions: ChannelVersions,
    parent: Manifest | None,
) -> list[str]:
    """Return the channels whose value this put must carry: the new ones, and those the parent does not have."""
    known = parent.versions if parent else {}
    refs = parent.refs if parent else {}
    return [
        channel
        for channel, version in checkpoint["channel_versions"].items()
        if channel in new_versions or channel not in refs or known.get(channel) != version
    ]


def checkpoint_row(
    writer: ContentWriter,
    serde: SerializerProtocol,
    place: Place,
    checkpoint: Checkpoint,
    metadata: StoredMetadata,
    values: Mapping[str, tuple[str, bytes]],
    parent: Manifest | None,
) -> tuple[CheckpointRow, Manifest]:
    """Return a checkpoint as it is stored, and its manifest."""
    versions = dict(checkpoint["channel_versions"])
    refs: dict[str, PayloadRef] = {}
    carried = {} if parent is None else parent.carried(versions, values)
    for channel in {**versions, **values}:  # a value without a version: only an imported checkpoint has such
        if channel in values:
            bound = limits.INLINE_INPUT_BYTES_MAX if channel == INPUT else limits.INLINE_MANIFEST_BYTES_MAX
            refs[channel] = writer.put(*values[channel], bound)
        elif channel in carried:
            refs[channel] = carried[channel]
    seen = writer.seen()
    if parent is not None and any(ref.inline is None for ref in carried.values()):
        seen = min(seen, parent.seen)
    rest = dict(checkpoint)
    del rest["channel_values"]
    kind, data = dumped(serde, rest, "the checkpoint", limits.VALUE_BYTES_MAX)
    packed = {channel: ref.packed() for channel, ref in refs.items()}
    body = pack(ormsgpack.packb([_FORMAT, kind, data, packed]))
    parent_id = place.checkpoint_id
    row = CheckpointRow(
        checkpoint_ns=place.ns,
        checkpoint_id=checkpoint["id"],
        parent_id=parent_id,
        body=body,
        metadata=metadata.data,
        fingerprint=fingerprint((parent_id or "").encode(), body, metadata.data),
        run_ref=metadata.run_ref,
        owner=writer.owner,
        blobs=writer.blobs(),
    )
    return row, Manifest(versions, refs, seen)


def encoded_metadata(
    serde: SerializerProtocol,
    config: RunnableConfig,
    metadata: CheckpointMetadata,
    only: frozenset[str] | None,
    max_bytes: int,
) -> StoredMetadata:
    """Return the metadata as stored: the caller's, and the config's simple values unless their name is of a secret.

    ``only`` restricts what comes from the config to these names.
    """
    shown: RunnableConfig = {
        "metadata": _shown(config.get("metadata"), only),
        "configurable": _shown(config.get("configurable"), only),
    }
    merged = get_checkpoint_metadata(shown, metadata)
    kind, data = dumped(serde, merged, "the metadata", max_bytes)
    run_ref = merged.get("run_id")
    stored = PayloadRef(kind, len(data), inline=data).encoded()
    return StoredMetadata(stored, None if run_ref is None else str(run_ref))


def _shown(found: Mapping[str, Any] | None, only: frozenset[str] | None) -> dict[str, Any]:
    if not found:
        return {}
    return {
        name: _simple(value)
        for name, value in found.items()
        # LangGraph's own names come first: most of a running graph's config, and it leaves them out itself.
        if not (type(name) is str and (name[:2] == "__" or name in EXCLUDED_METADATA_KEYS))
        and (only is None or name in only or name in _RUN_NAMES)
        and not _names_secret(str(name))
    }


@lru_cache(maxsize=limits.KEYS_CACHED_MAX)
def _names_secret(name: str) -> bool:
    return any(word in name.lower() for word in _SECRET_WORDS)


def _simple(value: Any) -> Any:
    """Return a config's value as the plain text or number that is compared with it."""
    if isinstance(value, str):
        return value if type(value) is str or isinstance(value, Enum) else str.__str__(value)
    return float.__float__(value) if isinstance(value, float) else value


def task_writes(
    writer: ContentWriter,
    serde: SerializerProtocol,
    place: Place,
    given: Sequence[tuple[str, Any]],
    task_id: str,
    task_path: str,
    max_bytes: int,
) -> TaskWrites:
    """Return the writes of a task as they are stored; of two special writes with one index the last one counts."""
    by_index: dict[int, TaskWrite] = {}
    for position, (channel, value) in enumerate(given):
        idx = WRITES_IDX_MAP.get(channel, position)
        plain = error_text(serde, channel, value)
        kind, data = dumped(serializer_of(serde, channel), plain, channel, max_bytes, channel=channel, task_id=task_id)
        by_index[idx] = TaskWrite(idx=idx, channel=channel, value=written(writer, kind, data))
    return TaskWrites(
        checkpoint_ns=place.ns,
        checkpoint_id=place.checkpoint_id or "",
        task_id=task_id,
        task_path=task_path,
        writes=tuple(by_index.values()),
        owner=writer.owner,
        blobs=writer.blobs(),
    )


def written(writer: ContentWriter, kind: str, data: bytes) -> bytes:
    """Return the value column of a pending write."""
    return writer.put(kind, data, limits.INLINE_WRITE_BYTES_MAX).encoded()


def manifest_of(body: bytes, serde: SerializerProtocol) -> Manifest:
    """Return the manifest of a stored body."""
    rest, refs = _opened(body, serde)
    return Manifest(rest.get("channel_versions", {}), refs)


def refs_of(body: bytes) -> Mapping[str, PayloadRef]:
    """Return where a stored body's values are, by channel; the checkpoint itself is not loaded."""
    return _taken_apart(body)[-1]


def with_refs(body: bytes, refs: Mapping[str, PayloadRef]) -> bytes:
    """Return a stored body with other places of its values: what :func:`refs_of` gives of it then."""
    kind, data, _ = _taken_apart(body)
    return pack(ormsgpack.packb([_FORMAT, kind, data, {channel: ref.packed() for channel, ref in refs.items()}]))


@lru_cache(maxsize=limits.BODIES_CACHED_MAX)
def _taken_apart(body: bytes) -> tuple[str, bytes, Mapping[str, PayloadRef]]:
    """Return a body's checkpoint as type and bytes, and its references (each read asks for them twice)."""
    version, *rest = ormsgpack.unpackb(unpack(body))
    if version != _FORMAT:
        msg = f"checkpoint body of format {version}; this code knows {_FORMAT}"
        raise UnknownFormat(msg, version=version)
    kind, data, packed = rest
    return kind, data, {channel: PayloadRef.unpacked(parts) for channel, parts in packed.items()}


def version_of(body: bytes, serde: SerializerProtocol) -> int:
    """Return the format version (``v``) of a stored checkpoint."""
    return int(_opened(body, serde)[0].get("v", 1))


def loaded(serde: SerializerProtocol, content: ContentReader, ref: PayloadRef, where: str) -> Any:
    """Return the value a reference stands for (raises CheckpointCorrupt)."""
    return load_value(serde, ref.type, content.content(ref, where), where)


def _opened(body: bytes, serde: SerializerProtocol) -> tuple[dict[str, Any], Mapping[str, PayloadRef]]:
    kind, data, refs = _taken_apart(body)
    return load_value(serde, kind, data, "the body of a checkpoint"), refs


def references(row: Row, writes: list[Row]) -> list[PayloadRef]:
    """Return what a checkpoint's row and writes refer to.

    Every read of a checkpoint comes through here first, so here the rows are compared with their fingerprints.

    Raises:
        CheckpointCorrupt: a row is not what was stored.

    """
    _verify(row, writes)
    return [*refs_of(row["body"]).values(), *(PayloadRef.decoded(write["value"]) for write in writes)]


def _verify(row: Row, writes: list[Row]) -> None:
    where = f"checkpoint {row['checkpoint_id']} (thread {row['thread_id']!r})"
    if fingerprint((row["parent_id"] or "").encode(), row["body"], row["metadata"]) != row["fingerprint"]:
        msg = f"the row of {where} does not have its fingerprint"
        raise CheckpointCorrupt(msg, checkpoint_id=row["checkpoint_id"])
    for write in writes:
        _verify_write(write, where, row["checkpoint_id"])


def _verify_write(write: Row, where: str, checkpoint_id: str) -> None:
    stored = TaskWrite(idx=write["idx"], channel=write["channel"], value=write["value"])
    if stored.fingerprint() != write["fingerprint"]:
        msg = f"the write to {write['channel']!r} of {where} does not have its fingerprint"
        raise CheckpointCorrupt(msg, checkpoint_id=checkpoint_id)


def write_ref(write: Row) -> PayloadRef:
    """Return what the row of a write refers to (raises CheckpointCorrupt)."""
    checkpoint_id = write["checkpoint_id"]
    _verify_write(write, f"checkpoint {checkpoint_id} (thread {write['thread_id']!r})", checkpoint_id)
    return PayloadRef.decoded(write["value"])


def checkpoint_tuple(
    stored: Stored,
    serde: SerializerProtocol,
    content: ContentReader,
) -> tuple[CheckpointTuple, Manifest]:
    """Return a stored checkpoint as LangGraph wants it (fresh objects), and its manifest.

    Raises:
        CheckpointCorrupt: content is missing or does not have the hash of its address.

    """
    row = stored.row
    place = Place(row["thread_id"], row["checkpoint_ns"], row["checkpoint_id"])
    rest, refs = _opened(row["body"], serde)

    named = {"thread_id": row["thread_id"], "checkpoint_id": row["checkpoint_id"]}

    def load(ref: PayloadRef, what: str, channel: str) -> Any:
        where = f"{what} {channel!r} of checkpoint {row['checkpoint_id']} (thread {row['thread_id']!r})"
        data = content.content(ref, where)
        return load_value(serde, ref.type, data, where, channel=channel, **named)

    rest["channel_values"] = {channel: load(ref, "channel", channel) for channel, ref in refs.items()}
    ordered = sorted(stored.writes, key=lambda w: writes_sort_key(w["task_path"], w["task_id"], w["idx"]))
    pending = [
        (w["task_id"], w["channel"], load(PayloadRef.decoded(w["value"]), "write to", w["channel"])) for w in ordered
    ]
    parent_id = None if row["orphan"] else row["parent_id"]
    # LangGraph goes on changing its own versions.
    manifest = Manifest(dict(rest.get("channel_versions", {})), refs)
    found = CheckpointTuple(
        config=place.config(row["checkpoint_id"]),
        checkpoint=cast("Checkpoint", rest),
        metadata=decoded_metadata(row["metadata"], serde),
        parent_config=place.config(parent_id) if parent_id else None,
        pending_writes=pending,
    )
    return found, manifest


def without_answer(found: CheckpointTuple) -> CheckpointTuple:
    """Return a checkpoint without the answer a person gave to it."""
    kept = [write for write in found.pending_writes or () if not (write[0] == NULL_TASK and write[1] == RESUME)]
    return found._replace(pending_writes=kept)


def decoded_metadata(data: bytes, serde: SerializerProtocol) -> CheckpointMetadata:
    """Return stored metadata."""
    ref = PayloadRef.decoded(data)
    return cast("CheckpointMetadata", load_value(serde, ref.type, ref.inline or b"", "the metadata of a checkpoint"))
