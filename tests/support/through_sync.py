"""A saver whose async methods are its sync ones: who calls only one kind of them judges both."""

from collections.abc import AsyncIterator
from typing import Any

from langgraph.checkpoint.base import CheckpointTuple

from runtime_persist.adapters.workflow import WorkflowCheckpointAdapter


class ThroughSyncMethods(WorkflowCheckpointAdapter):
    """Each async method calls its sync twin."""

    async def aget_tuple(self, config: Any) -> CheckpointTuple | None:
        return self.get_tuple(config)

    async def alist(self, config: Any, **options: Any) -> AsyncIterator[CheckpointTuple]:
        for found in self.list(config, **options):
            yield found

    async def aput(self, *args: Any, **options: Any) -> Any:
        return self.put(*args, **options)

    async def aput_writes(self, config: Any, writes: Any, task_id: str, task_path: str = "") -> None:
        self.put_writes(config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        self.delete_thread(thread_id)

    async def adelete_for_runs(self, run_ids: Any) -> None:
        self.delete_for_runs(run_ids)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        self.copy_thread(source_thread_id, target_thread_id)

    async def aprune(self, thread_ids: Any, **options: Any) -> None:
        self.prune(thread_ids, **options)

    async def aget_delta_channel_history(self, *, config: Any, channels: Any) -> Any:
        return self.get_delta_channel_history(config=config, channels=channels)
