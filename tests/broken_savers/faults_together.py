"""Savers that are broken only when calls come together, are cancelled, or are sync instead of async."""

import threading

from runtime_persist.adapters.workflow import WorkflowCheckpointAdapter
from tests.broken_savers import checks_together
from tests.broken_savers.broken import Broken, caught_by, configured, place
from tests.fixtures.raw import DEADLINE_SECONDS
from tests.saver import test_list, test_put_and_get, test_writes
from tests.support.way import ASYNC, SYNC


class _Pairs(Broken):
    """Lets two calls meet; one of them is told that it came second."""

    def __init__(self, *args, **options) -> None:
        super().__init__(*args, **options)
        self.gate = threading.Barrier(2, timeout=DEADLINE_SECONDS)


@caught_by(checks_together.writes_of_tasks_that_end_at_once_are_all_stored, ways=(SYNC,))
class LosesWritesOfThreads(_Pairs):
    """Two threads read the same rows, add theirs, and store: one's are lost."""

    def put_writes(self, config, writes, task_id, task_path=""):
        if self.gate.wait():
            super().put_writes(config, writes, task_id, task_path)


@caught_by(checks_together.puts_of_threads_at_once_are_all_stored, ways=(SYNC,), shows=AttributeError)
class LosesPutsOfThreads(_Pairs):
    def put(self, config, checkpoint, metadata, new_versions):
        if self.gate.wait():
            return super().put(config, checkpoint, metadata, new_versions)
        return configured(config, checkpoint_id=checkpoint["id"])


class _Busy(Broken):
    """Drops an async call that comes while another one waits."""

    async def alone(self, call):
        if not self.memory.setdefault("busy", []):
            self.memory["busy"].append(True)
            try:
                return await call()
            finally:
                self.memory["busy"].clear()
        return None


@caught_by(checks_together.writes_of_tasks_that_end_at_once_are_all_stored, ways=(ASYNC,))
class LosesWritesOfTasks(_Busy):
    async def aput_writes(self, *args):
        await self.alone(lambda: WorkflowCheckpointAdapter.aput_writes(self, *args))


@caught_by(checks_together.puts_of_threads_at_once_are_all_stored, ways=(ASYNC,), shows=AttributeError)
class LosesPutsOfTasks(_Busy):
    async def aput(self, config, checkpoint, *args):
        stored = await self.alone(lambda: WorkflowCheckpointAdapter.aput(self, config, checkpoint, *args))
        return stored or configured(config, checkpoint_id=checkpoint["id"])


@caught_by(checks_together.what_is_put_while_others_prune_stays)
class PrunesByAnOldList(Broken):
    """Lists what there is, and later deletes all but what was the newest then."""

    def prune(self, thread_ids, **options):
        self.memory["keep"] = {place(found) for found in self.listed({"configurable": {"thread_id": "t"}}, limit=1)}

    def shown(self, found):
        return found if place(found) in self.memory.get("keep", {place(found)}) else None


@caught_by(checks_together.a_call_that_is_cancelled_is_stored_whole_or_not_at_all, ways=(ASYNC,))
class StoresWritesOneByOne(Broken):
    """Each in a transaction of its own: a caller that is cancelled leaves some of them."""

    async def aput_writes(self, config, writes, task_id, task_path=""):
        for count in range(1, len(writes) + 1):
            await WorkflowCheckpointAdapter.aput_writes(self, config, writes[:count], task_id, task_path)


@caught_by(checks_together.a_cancelled_put_leaves_nothing_half, ways=(ASYNC,))
class StoresRowsBeforeValues(Broken):
    """Stores a checkpoint, then its values: a caller that is cancelled leaves one without."""

    async def aput(self, config, checkpoint, metadata, new_versions):
        bare = {**checkpoint, "channel_values": {}}
        await WorkflowCheckpointAdapter.aput(self, config, bare, metadata, new_versions)
        return await WorkflowCheckpointAdapter.aput(self, config, checkpoint, metadata, new_versions)


class _OnlyAsync(Broken):
    """The async methods are the unbroken ones."""

    aget_tuple = WorkflowCheckpointAdapter.aget_tuple
    alist = WorkflowCheckpointAdapter.alist
    aput = WorkflowCheckpointAdapter.aput
    aput_writes = WorkflowCheckpointAdapter.aput_writes
    adelete_thread = WorkflowCheckpointAdapter.adelete_thread


@caught_by(test_put_and_get.test_a_checkpoint_comes_back_as_it_was_given, ways=(SYNC,), shows=AttributeError)
class SyncGetTupleDiffers(_OnlyAsync):
    def get_tuple(self, config):
        return None


@caught_by(test_writes.test_late_writes_of_an_older_checkpoint_are_accepted, ways=(SYNC,))
class SyncPutWritesDiffers(_OnlyAsync):
    def put_writes(self, config, writes, task_id, task_path=""):
        return None


@caught_by(test_list.test_newest_come_first_with_values_parents_and_writes, ways=(SYNC,))
class SyncListDiffers(_OnlyAsync):
    def list(self, config, **options):
        yield from self.listed(config, **options)[::-1]


@caught_by(test_writes.test_a_deleted_thread_begins_anew, ways=(SYNC,))
class SyncDeleteDiffers(_OnlyAsync):
    def delete_thread(self, thread_id):
        return None


@caught_by(test_put_and_get.test_a_checkpoint_comes_back_as_it_was_given, ways=(ASYNC,), shows=AttributeError)
class AsyncGetTupleDiffers(Broken):
    async def aget_tuple(self, config):
        return None


@caught_by(test_list.test_newest_come_first_with_values_parents_and_writes, ways=(ASYNC,))
class AsyncListDiffers(Broken):
    async def alist(self, config, **options):
        for found in self.listed(config, **options)[1:]:
            yield found
