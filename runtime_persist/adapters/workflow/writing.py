"""How a saver writes: serialize first, then one command; the first failure is latched, the run is asked to drain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from runtime_persist.adapters.workflow import clock, encoding
from runtime_persist.adapters.workflow.memory import Expectation, Invocation
from runtime_persist.adapters.workflow.reading import check_thread, place_of
from runtime_persist.commands.commit_workflow_checkpoint import CommitWorkflowCheckpoint
from runtime_persist.commands.commit_workflow_task_writes import CommitWorkflowTaskWrites
from runtime_persist.commands.delete_thread import DeleteThread
from runtime_persist.commands.put_thread_checkpoint import PutThreadCheckpoint
from runtime_persist.commands.put_thread_writes import PutThreadWrites
from runtime_persist.commands.replace_thread_checkpoint import ReplaceThreadCheckpoint
from runtime_persist.engine.sending import send_ahead
from runtime_persist.errors import (
    CheckpointConflict,
    RuntimePersistError,
    StaleWriter,
    ThreadMismatch,
    UnsupportedValue,
    ValueTooLarge,
)
from runtime_persist.model.ids import NO_CHECKPOINT, new_id
from runtime_persist.queries import checkpoints as queries

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from concurrent.futures import Future

    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata

    from runtime_persist.adapters.workflow.core import SaverContext
    from runtime_persist.adapters.workflow.encoding import Manifest, Place
    from runtime_persist.commands.parts.checkpoint_rows import CheckpointRow
    from runtime_persist.commands.parts.spec import Command
    from runtime_persist.contentstore import ContentWriter
    from runtime_persist.coordinator import CommitReceipt
    from runtime_persist.engine import Flow, OwnedRun
    from runtime_persist.model.payload import PayloadRef

_REFUSED_VALUE = (UnsupportedValue, ValueTooLarge)


def put(
    saver: SaverContext,
    config: RunnableConfig,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    new_versions: ChannelVersions,
) -> Flow[RunnableConfig]:
    """Store a checkpoint under the saver's lease, or optimistically without one."""
    place = place_of(config)
    if place.checkpoint_id == NO_CHECKPOINT:  # it began with nothing, so it has no parent
        place = place._replace(checkpoint_id=None)
    scope = _Scope(saver, config, place)
    try:
        scope.check(checkpoint["id"])
        clock.check(checkpoint["id"], place.checkpoint_id, owned=scope.owned is not None)
        limit = saver.core.engine.max_value_bytes
        key = (place.thread_id, place.ns, place.checkpoint_id or "")
        parent = saver.core.manifest(key)
        # What this process did not send or see a short while ago may be about to be removed: it is not carried over.
        known = place.checkpoint_id is None or (parent is not None and parent.fresh)
        channels = (
            encoding.changed_channels(checkpoint, new_versions, parent)
            if known
            else list(checkpoint["channel_versions"])
        )
        values = encoding.serialized(saver.serde, checkpoint, channels, limit)
        stored_metadata = encoding.encoded_metadata(saver.serde, config, metadata, saver.core.metadata_keys, limit)
        if not known:
            parent = parent or (yield from _parent(saver, place))
            if parent is not None:
                values |= yield from _values_of(saver, place, parent.carried(checkpoint["channel_versions"], values))
        writer = scope.writer()
        row, manifest = encoding.checkpoint_row(
            writer,
            saver.serde,
            place,
            checkpoint,
            stored_metadata,
            values,
            parent,
        )
        if writer.large:
            yield from send_ahead(saver.core.engine, writer)
        sent = yield from scope.commit_checkpoint(row)
    except RuntimePersistError as error:
        raise scope.failed(error) from error.__cause__
    if sent:
        writer.committed()
        saver.core.remember((place.thread_id, place.ns, row.checkpoint_id), manifest)
    return place.config(row.checkpoint_id)


def _parent(saver: SaverContext, place: Place) -> Flow[Manifest | None]:
    engine = saver.core.engine
    body = yield engine.coordinator.read(
        "read_parent",
        lambda: queries.body(engine.space, place.thread_id, place.ns, place.checkpoint_id or ""),
        brief=True,
    )
    return None if body is None else encoding.manifest_of(body, saver.serde)


def _values_of(saver: SaverContext, place: Place, refs: Mapping[str, PayloadRef]) -> Flow[dict[str, tuple[str, bytes]]]:
    """Return the values of a parent's channels that the checkpoint does not bring itself, to be sent again."""
    stored = {channel: ref for channel, ref in refs.items() if ref.inline is None}
    engine = saver.core.engine
    content = engine.content.reader()
    content.want(stored.values())
    if content.missing():
        yield engine.coordinator.read("read_carried", lambda: queries.fill(engine.space, content))
    where = f"of checkpoint {place.checkpoint_id} (thread {place.thread_id!r})"
    return {
        channel: (ref.type, content.content(ref, f"channel {channel!r} {where}")) for channel, ref in stored.items()
    }


def put_writes(
    saver: SaverContext,
    config: RunnableConfig,
    writes: Sequence[tuple[str, Any]],
    task_id: str,
    task_path: str,
) -> Flow[None]:
    """Store the writes of a task."""
    if not writes:
        return
    place = place_of(config)
    scope = _Scope(saver, config, place)
    try:
        scope.check(place.checkpoint_id or "")
        limit = saver.core.engine.max_value_bytes
        writer = scope.writer()
        given = encoding.task_writes(writer, saver.serde, place, writes, task_id, task_path, limit)
        owned = scope.owned
        indices = ",".join(str(write.idx) for write in given.writes)
        command_id = f"writes:{place.thread_id}:{place.ns}:{given.checkpoint_id}:{task_id}:{indices}"
        command: Command
        if owned is not None:
            command = CommitWorkflowTaskWrites(
                space=owned.lease.space,
                command_id=command_id,
                run_id=owned.lease.run_id,
                epoch=owned.lease.epoch,
                thread_id=place.thread_id,
                given=given,
            )
        else:
            command = PutThreadWrites(command_id=command_id, given=given, **scope.thread())
        if writer.large:
            yield from send_ahead(saver.core.engine, writer)
        receipt: CommitReceipt = yield scope.coordinator.commit(command)
    except RuntimePersistError as error:
        raise scope.failed(error) from error.__cause__
    if not receipt.replayed:
        writer.committed()


def delete_thread(saver: SaverContext, thread_id: str) -> Flow[None]:
    """Delete a thread."""
    check_thread(saver.owned, thread_id)
    engine = saver.core.engine
    coordinator = engine.coordinator
    yield coordinator.commit(
        DeleteThread(
            space=engine.space,
            command_id=new_id(),
            thread_id=thread_id,
            thread_hash=coordinator.keys.thread_hash(thread_id),
        ),
    )
    saver.core.forget_thread(thread_id)


class _Scope:
    """One write: under whose right it is made, and what happens when it fails."""

    def __init__(self, saver: SaverContext, config: RunnableConfig, place: Place) -> None:
        self._core = saver.core
        self._config = config
        self._place = place
        self.owned: OwnedRun | None = saver.owned
        self.coordinator = self._core.engine.coordinator
        self._invocation: Invocation | None = (
            None if self.owned is not None else self._core.invocations.of(config["configurable"])
        )

    def writer(self) -> ContentWriter:
        return self._core.engine.content.writer(ahead=True)

    def thread(self) -> dict[str, Any]:
        thread_id = self._place.thread_id
        return {
            "space": self._core.engine.space,
            "thread_id": thread_id,
            "thread_hash": self.coordinator.keys.thread_hash(thread_id),
        }

    def check(self, checkpoint_id: str) -> None:
        """Refuse at once after an earlier failure, and a session that is used for another thread.

        What came before a refused value is well: it may be stored still (LangGraph stores it in the background).
        """
        invocation = self._invocation
        first = self.owned.error if self.owned is not None else invocation.error if invocation is not None else None
        if isinstance(first, _REFUSED_VALUE) and checkpoint_id <= first.details.get("checkpoint_id", ""):
            first = None
        if first is not None:
            raise first
        check_thread(self.owned, self._place.thread_id)

    def failed(self, error: RuntimePersistError) -> RuntimePersistError:
        """Latch the failure, ask the run to drain, and return what the caller raises."""
        if isinstance(error, _REFUSED_VALUE):
            error.details.setdefault("checkpoint_id", self._place.checkpoint_id or "")
        control = getattr(self._config["configurable"].get("__pregel_runtime"), "control", None)
        if self.owned is not None:
            if control is not None:
                self.owned.drain_with(control)
            if isinstance(error, ThreadMismatch):
                return error  # the run it belongs to is well
            return self.owned.fail(error)
        if self._invocation is not None and self._invocation.has_runtime:
            self._invocation.error = self._invocation.error or error
            if control is not None:
                control.request_drain(error.code)
        return error

    def commit_checkpoint(self, row: CheckpointRow) -> Flow[bool]:
        """Commit a checkpoint under the lease, or compare and set the head; return whether it was stored just now."""
        command_id = f"put:{self._place.thread_id}:{row.checkpoint_ns}:{row.checkpoint_id}"
        owned = self.owned
        if owned is not None:
            lease = owned.lease
            future = self.coordinator.commit(
                CommitWorkflowCheckpoint(
                    space=lease.space,
                    command_id=command_id,
                    run_id=lease.run_id,
                    epoch=lease.epoch,
                    thread_id=self._place.thread_id,
                    row=row,
                ),
            )
            # Noted where it is committed, not where the caller goes on: an operation that blocks the caller's event
            # loop waits for exactly this.
            owned.sent(row.checkpoint_id)
            future.add_done_callback(lambda done: _note_durable(done, owned, row.checkpoint_id))
            owned_receipt: CommitReceipt = yield future
            return not owned_receipt.replayed
        where = (self._place.thread_id, row.checkpoint_ns)
        invocation, known = self._invocation, self._core.invocations
        if invocation is None:
            return False
        wants = Expectation()
        if self._core.optimistic:
            wants = known.expectation(invocation, where, row.parent_id, row.checkpoint_id)
        if wants.broken:
            return (yield from self._put_again(command_id, row, _broken(self._place, row)))
        try:
            receipt: CommitReceipt = yield self.coordinator.commit(
                PutThreadCheckpoint(
                    command_id=command_id,
                    row=row,
                    expects_head=wants.expects_head,
                    expected_head=wants.head,
                    **self.thread(),
                ),
            )
        except CheckpointConflict:
            return (yield from self._replace(command_id, row))
        known.put(invocation, where, row.checkpoint_id)
        return not receipt.replayed

    def _put_again(self, command_id: str, row: CheckpointRow, refusal: StaleWriter) -> Flow[bool]:
        """Accept a re-put of a stored id, which is never judged as a step; anything else is refused."""
        place, space = self._place, self._core.engine.space
        body = yield self.coordinator.read(
            "read_checkpoint",
            lambda: queries.body(space, place.thread_id, row.checkpoint_ns, row.checkpoint_id),
        )
        if body is None:
            raise refusal
        return body != row.body and (yield from self._replace(command_id, row))

    def _replace(self, command_id: str, row: CheckpointRow) -> Flow[bool]:
        receipt: CommitReceipt = yield self.coordinator.commit(
            ReplaceThreadCheckpoint(command_id=f"re{command_id}", row=row, **self.thread()),
        )
        return not receipt.replayed


def _note_durable(done: Future[CommitReceipt], owned: OwnedRun, checkpoint_id: str) -> None:
    if done.exception() is None:
        owned.durable(checkpoint_id)


def _broken(place: Place, row: CheckpointRow) -> StaleWriter:
    return StaleWriter(
        f"checkpoint {row.checkpoint_id} of thread {place.thread_id!r} does not follow this invocation's own last "
        "checkpoint; load the thread again and repeat the call",
        thread_id=place.thread_id,
        checkpoint_id=row.checkpoint_id,
    )
