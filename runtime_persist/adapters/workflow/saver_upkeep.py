"""What the saver does with whole threads and with what is left of them: delete, copy, prune, expire, collect."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from runtime_persist.adapters.workflow import collecting, upkeep, writing
from runtime_persist.engine import arun, run
from runtime_persist.model import limits
from runtime_persist.model.ids import thread_id_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from runtime_persist.adapters.workflow.collecting import CollectedContent, CollectProgress
    from runtime_persist.adapters.workflow.core import SaverContext


class SaverUpkeep(ABC):
    """The saver's methods beside those that a graph calls while it runs."""

    @property
    @abstractmethod
    def context(self) -> SaverContext:
        """Return what the methods work on."""

    def delete_thread(self, thread_id: str) -> None:
        """Delete all of a thread: checkpoints, writes, runs, journal. An unknown thread is no error.

        Raises:
            ThreadOwned: a live run owns the thread.

        """
        run(writing.delete_thread(self.context, thread_id_of(thread_id)))

    async def adelete_thread(self, thread_id: str) -> None:
        """Do :meth:`delete_thread` from an event loop."""
        await arun(writing.delete_thread(self.context, thread_id_of(thread_id)))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints whose metadata names one of the runs (``run_id``), in all threads and namespaces.

        Deleting ancestors of a live thread can take history that its DeltaChannels need.

        Raises:
            ThreadOwned: a live run owns one of the threads; earlier threads are done.

        """
        run(upkeep.delete_for_runs(self.context, run_ids))

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Do :meth:`delete_for_runs` from an event loop."""
        await arun(upkeep.delete_for_runs(self.context, run_ids))

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy a thread with its journal to an empty one; content is shared, effects never fire again in the copy.

        Raises:
            InvalidInput: the target is not empty, or is the source.

        """
        run(upkeep.copy_thread(self.context, source_thread_id, target_thread_id))

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Do :meth:`copy_thread` from an event loop."""
        await arun(upkeep.copy_thread(self.context, source_thread_id, target_thread_id))

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Prune threads, one transaction each.

        Args:
            thread_ids: the threads.
            strategy: ``keep_latest`` keeps the newest checkpoint of each namespace (and, hidden, the history that
                its DeltaChannels need); ``delete`` deletes the threads.

        Raises:
            TypeError: a text instead of a list of thread ids.
            ValueError: another strategy.
            ThreadOwned: a live run owns one of the threads; earlier threads are done.

        ``prune`` of a bound graph needs no hidden history: the graph knows how a DeltaChannel's value is made.

        """
        run(upkeep.prune(self.context, thread_ids, strategy))

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Do :meth:`prune` from an event loop."""
        await arun(upkeep.prune(self.context, thread_ids, strategy))

    def expire_delete_marks(self, *, days: float = limits.DELETE_MARKS_KEPT_DAYS) -> int:
        """Forget the deleted threads of this space whose deletion is that long ago; return how many.

        A deleted thread leaves a mark without its id, by which a late write is refused (ThreadDeleted). Call this now
        and then (``runtime-persist db expire-delete-marks``): nothing else removes the marks.

        Args:
            days: how long a mark is kept, by the database's clock; at least as long as a writer may be late.

        Raises:
            InvalidInput: ``days`` is no number from 0 to 36,500.

        """
        return run(upkeep.expire_delete_marks(self.context, days))

    async def aexpire_delete_marks(self, *, days: float = limits.DELETE_MARKS_KEPT_DAYS) -> int:
        """Do :meth:`expire_delete_marks` from an event loop."""
        return await arun(upkeep.expire_delete_marks(self.context, days))

    def collect_content(
        self,
        *,
        hours: float = limits.COLLECT_HOURS,
        progress: Callable[[CollectProgress], None] = lambda _: None,
    ) -> CollectedContent:
        """Remove stored content of this space that no checkpoint, write, run or operation refers to any more.

        Threads share content, so deleting and pruning leave it. Call this once a day (``runtime-persist db collect``):
        what nobody refers to is marked, and a later call removes it if that is still so after ``hours``. Any number of
        processes may do so, and others may write meanwhile. All rows are read, as of one moment; in memory are 16
        bytes for each piece of content that is referred to.

        Args:
            hours: how long content is marked before it is removed, by the database's clock; not less than 2, for a
                writer may rely on what it saw stored for an hour.
            progress: called as rows were read, from any thread.

        Raises:
            InvalidInput: ``hours`` is no number from 2 to 876,000.
            CheckpointCorrupt, UnknownFormat: a reference cannot be read, so nobody can tell what is in use; nothing
                was removed.

        """
        return run(collecting.collect(self.context, hours, progress))

    async def acollect_content(
        self,
        *,
        hours: float = limits.COLLECT_HOURS,
        progress: Callable[[CollectProgress], None] = lambda _: None,
    ) -> CollectedContent:
        """Do :meth:`collect_content` from an event loop."""
        return await arun(collecting.collect(self.context, hours, progress))
