"""Threads of langgraph's own savers (SqliteSaver, PostgresSaver) become threads here, and are compared afterwards.

Everything is as in the source: ids, parents, metadata, versions of any format, task paths and positions of writes.
A thread's heads move last, so a thread that is imported halfway is not there for a graph; the import is run again.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from langgraph.checkpoint.base import Checkpoint, CheckpointTuple, writes_sort_key

from runtime_persist.adapters.workflow import encoding, reading, sources
from runtime_persist.adapters.workflow.encoding import Place
from runtime_persist.adapters.workflow.sends import TASKS
from runtime_persist.commands.import_thread import ImportThread
from runtime_persist.commands.parts.write_rows import TaskWrite, TaskWrites
from runtime_persist.engine import run
from runtime_persist.engine.payloads import dumped
from runtime_persist.engine.requests import thread_of
from runtime_persist.errors import CheckpointConflict, CheckpointCorrupt, InvalidInput, RuntimePersistError
from runtime_persist.model.ids import new_id, thread_id_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from pathlib import Path

    from runtime_persist.adapters.workflow.core import SaverContext
    from runtime_persist.adapters.workflow.saver import WorkflowCheckpointAdapter
    from runtime_persist.adapters.workflow.sources import Source, Write
    from runtime_persist.commands.parts.checkpoint_rows import CheckpointRow
    from runtime_persist.contentstore import ContentWriter
    from runtime_persist.engine import Flow

_PAGE = 20
"""Checkpoints of one transaction."""


@dataclass(slots=True)
class ImportReport:
    """What an import did.

    Attributes:
        threads: threads that are here now, each compared with its source.
        left: threads that were imported before and went on here since; they are left alone.
        checkpoints: checkpoints that were stored.
        present: checkpoints that were here already.
        failed: thread -> why it is not (or only partly) here.

    """

    threads: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    checkpoints: int = 0
    present: int = 0
    failed: dict[str, RuntimePersistError] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an import is: the thread it is at, and checkpoints done and in all."""

    thread_id: str
    done: int
    total: int


def import_threads(
    saver: WorkflowCheckpointAdapter,
    url: str | Path,
    *,
    threads: Collection[str] | None = None,
    schema: str | None = None,
    progress: Callable[[Progress], None] = lambda _: None,
) -> ImportReport:
    """Import threads of SqliteSaver or PostgresSaver; run it again after a crash, or when the source went on.

    Args:
        saver: the target.
        url: the source: a SQLite file or a PostgreSQL URL.
        threads: only these (None: all).
        schema: PostgreSQL schema of the source.
        progress: called after each page.

    Raises:
        InvalidInput: there is no such source, or it has no such thread.
        MissingDependency: langgraph's package for the source is not installed.

    What concerns one thread is in the report's ``failed``, and the others go on.

    """
    with sources.opened(url, saver.serde, schema) as source:
        known = source.threads()
        wanted = known if threads is None else list(dict.fromkeys(threads))
        if missing := [thread for thread in wanted if thread not in set(known)]:
            msg = f"the source has no thread {', '.join(map(repr, missing))}"
            raise InvalidInput(msg, threads=missing)
        importer = _Importer(saver.context, source, progress, wanted)
        for thread_id in wanted:
            try:
                run(importer.thread(thread_id))
            except RuntimePersistError as error:
                importer.report.failed[thread_id] = error
        return importer.report


class _Importer:
    """One import: the target, the source, and what was done so far."""

    def __init__(
        self,
        saver: SaverContext,
        source: Source,
        progress: Callable[[Progress], None],
        threads: Sequence[str],
    ) -> None:
        self.report = ImportReport()
        self._saver = saver
        self._source = source
        self._progress = progress
        self._total = sum(len(source.ids(t, ns)) for t in threads for ns in source.namespaces(t))
        self._done = 0

    def thread(self, thread_id: str) -> Flow[None]:
        """Import one thread, compare it, and let its heads appear."""
        thread_id_of(thread_id)
        heads: dict[str, tuple[str | None, str]] = {}
        here = self.report.threads
        for ns in self._source.namespaces(thread_id):
            place = Place(thread_id, ns, None)
            ids = self._source.ids(thread_id, ns)
            if ids and (yield from self._went_on(place, ids)):
                self.report.present += len(ids)
                self._tell(thread_id, len(ids))
                here = self.report.left
                continue
            if ids:
                head = yield from self._stored(place)
                heads[ns] = (None if head is None else _id(head), ids[0])
            for start in range(0, len(ids), _PAGE):
                yield from self._page(place, ids[start : start + _PAGE])
            if early := self._source.early_ids(thread_id, ns):
                given = self._task_writes(place, self._source.writes(thread_id, ns, early))
                yield from self._commit(thread_id, writes=tuple(given))
        yield from self._commit(thread_id, heads=heads)
        here.append(thread_id)

    def _went_on(self, place: Place, ids: list[str]) -> Flow[bool]:
        """Return whether the namespace was imported before and is used here now."""
        head = yield from self._stored(place)
        if head is None or _id(head) in ids:
            return False
        if (yield from self._stored(place, ids[0])) is None:
            msg = (
                f"thread {place.thread_id!r} went on here (to {_id(head)}) and in the source (to {ids[0]}); "
                "copy one of them to another thread id first"
            )
            raise CheckpointConflict(msg, thread_id=place.thread_id, head=_id(head))
        return True

    def _page(self, place: Place, ids: Sequence[str]) -> Flow[None]:
        found = [_normal(one) for one in self._source.page(place.thread_id, place.ns, ids)]
        writes: dict[str, list[Write]] = defaultdict(list)
        for write in self._source.writes(place.thread_id, place.ns, ids):
            writes[write.checkpoint_id].append(write)
        rows: list[CheckpointRow] = []
        given: list[TaskWrites] = []
        sent: list[CheckpointTuple] = []
        for one in found:
            mine = writes[_id(one)]
            wanted = one._replace(pending_writes=_pending(mine))
            stored = yield from self._stored(place, _id(one))
            if stored is not None and self._same(stored, wanted):
                self.report.present += 1
                continue
            if stored is None or not self._same(stored, wanted._replace(pending_writes=[])):
                rows.append(self._row(place, one))
            given += self._task_writes(place, mine)
            sent.append(wanted)
        if sent:
            yield from self._commit(place.thread_id, rows=tuple(rows), writes=tuple(given))
        for wanted in sent:
            stored = yield from self._stored(place, _id(wanted))
            if stored is None or not self._same(stored, wanted):
                msg = (
                    f"checkpoint {_id(wanted)} of thread {place.thread_id!r} does not come back as it was in the source"
                )
                raise CheckpointCorrupt(msg, thread_id=place.thread_id, checkpoint_id=_id(wanted))
        self.report.checkpoints += len(sent)
        self._tell(place.thread_id, len(found))

    def _tell(self, thread_id: str, more: int) -> None:
        self._done += more
        self._progress(Progress(thread_id, self._done, self._total))

    # --- the target ---------------------------------------------------------------------------------------------------

    def _stored(self, place: Place, checkpoint_id: str | None = None) -> Flow[CheckpointTuple | None]:
        found = yield from reading.get_tuple(self._saver, place.config(checkpoint_id or ""))
        return None if found is None else _normal(found)

    def _commit(self, thread_id: str, **fields: Any) -> Flow[None]:
        engine = self._saver.core.engine
        yield engine.coordinator.commit(ImportThread(command_id=new_id(), **fields, **thread_of(engine, thread_id)))

    def _row(self, place: Place, found: CheckpointTuple) -> CheckpointRow:
        engine, serde = self._saver.core.engine, self._saver.serde
        values = encoding.serialized(
            serde, found.checkpoint, found.checkpoint["channel_values"], engine.max_value_bytes
        )
        parent = None if found.parent_config is None else found.parent_config["configurable"]["checkpoint_id"]
        metadata = encoding.encoded_metadata(serde, {}, found.metadata, None, engine.max_value_bytes)
        row, _ = encoding.checkpoint_row(
            self._writer(), serde, Place(place.thread_id, place.ns, parent), found.checkpoint, metadata, values, None
        )
        return row

    def _writer(self) -> ContentWriter:
        return self._saver.core.engine.content.writer()

    def _task_writes(self, place: Place, found: Sequence[Write]) -> list[TaskWrites]:
        by_task: dict[tuple[str, str, str], list[Write]] = defaultdict(list)
        for write in found:
            by_task[write.checkpoint_id, write.task_id, write.task_path].append(write)
        made: list[TaskWrites] = []
        for (checkpoint_id, task_id, task_path), mine in by_task.items():
            writer = self._writer()
            writes = tuple(
                TaskWrite(
                    idx=write.idx,
                    channel=write.channel,
                    value=encoding.written(writer, *self._dumped(write.channel, write.value)),
                )
                for write in mine
            )
            made.append(
                TaskWrites(
                    checkpoint_ns=place.ns,
                    checkpoint_id=checkpoint_id,
                    task_id=task_id,
                    task_path=task_path,
                    writes=writes,
                    owner=writer.owner,
                    blobs=writer.blobs(),
                )
            )
        return made

    # --- comparing ----------------------------------------------------------------------------------------------------

    def _dumped(self, what: str, value: Any) -> tuple[str, bytes]:
        return dumped(self._saver.serde, value, what, self._saver.core.engine.max_value_bytes)

    def _same(self, found: CheckpointTuple, wanted: CheckpointTuple) -> bool:
        """Return whether a stored checkpoint is the source's; it may have more writes, of a graph that went on here."""
        if found.parent_config != wanted.parent_config:
            return False
        if not self._equal(found.checkpoint, wanted.checkpoint) or not self._equal(found.metadata, wanted.metadata):
            return False
        left = iter(found.pending_writes or ())
        return all(any(self._equal(one, other) for other in left) for one in wanted.pending_writes or ())

    def _equal(self, one: Any, other: Any) -> bool:
        """Return whether two values are stored as the same bytes, or are equal (sets have no order)."""
        if self._dumped("a value", one) == self._dumped("a value", other):
            return True
        if isinstance(one, dict) and isinstance(other, dict):
            return one.keys() == other.keys() and all(self._equal(one[key], other[key]) for key in one)
        try:
            return type(one) is type(other) and bool(one == other)
        except Exception:  # noqa: BLE001 (somebody's __eq__; arrays have no one truth)
            return False


def _id(found: CheckpointTuple) -> str:
    return cast("str", found.config["configurable"]["checkpoint_id"])


def _pending(writes: Sequence[Write]) -> list[tuple[str, str, Any]]:
    ordered = sorted(writes, key=lambda write: writes_sort_key(write.task_path, write.task_id, write.idx))
    return [(write.task_id, write.channel, write.value) for write in ordered]


def _normal(found: CheckpointTuple) -> CheckpointTuple:
    """Return a checkpoint of an old format without the sends that are attached when it is read: its parent has them."""
    if found.checkpoint.get("v", 1) >= encoding.SENDS_IN_PARENT_BELOW or found.parent_config is None:
        return found
    checkpoint: dict[str, Any] = {**found.checkpoint}
    for part in ("channel_values", "channel_versions"):
        checkpoint[part] = {key: value for key, value in checkpoint[part].items() if key != TASKS}
    return found._replace(checkpoint=cast("Checkpoint", checkpoint))


__all__ = ["ImportReport", "Progress", "import_threads"]
