"""Cues between the demo and its workers: a worker says where it is and waits, so that it can be killed right there."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, Final

from langgraph.config import get_config

from runtime_persist.commands.commit_workflow_checkpoint import CommitWorkflowCheckpoint
from runtime_persist.commands.commit_workflow_task_writes import CommitWorkflowTaskWrites
from runtime_persist.commands.finalize_run import FinalizeRun
from runtime_persist.commands.parts.checkpoint_rows import CheckpointRow
from runtime_persist.commands.parts.write_rows import TaskWrite, TaskWrites
from runtime_persist.commands.renew_lease import RenewLease
from runtime_persist.errors import RuntimePersistError
from runtime_persist.model.ids import new_id

if TYPE_CHECKING:
    from runtime_persist.commands.parts.spec import Command
    from runtime_persist.engine import OwnedRun

PORT: Final = "RUNTIME_PERSIST_DEMO_PORT"
CUE: Final = "RUNTIME_PERSIST_DEMO_CUE"
TELL: Final = "RUNTIME_PERSIST_DEMO_TELL_FD"
HEAR: Final = "RUNTIME_PERSIST_DEMO_HEAR_FD"


def cue(place: str) -> None:
    """At the place this worker was told to stop at: say so, wait for the word, and try every kind of write.

    A killed worker never hears the word. One that was only stopped hears it after somebody else took its run over:
    then it tries to write as if nothing had happened, and reports how each write was refused.
    """
    if os.environ.get(CUE) != place:
        return
    tell, hear = int(os.environ[TELL]), int(os.environ[HEAR])
    os.write(tell, f"{place}\n".encode())
    os.read(hear, 1)
    os.write(tell, (json.dumps(_try_to_write()) + "\n").encode())


def _try_to_write() -> dict[str, str]:
    owned: OwnedRun = get_config()["configurable"]["__pregel_checkpointer"].owned_run
    return {kind: _sent(owned, command) for kind, command in _stale_writes(owned).items()}


def _sent(owned: OwnedRun, command: Command) -> str:
    try:
        owned.coordinator.commit(command).result()
    except RuntimePersistError as error:
        return error.code
    return "ACCEPTED"


def _stale_writes(owned: OwnedRun) -> dict[str, Command]:
    lease = owned.lease
    held: dict[str, Any] = {
        "space": lease.space,
        "command_id": new_id(),
        "run_id": lease.run_id,
        "epoch": lease.epoch,
    }
    row = CheckpointRow(
        checkpoint_ns="",
        checkpoint_id=new_id(),
        parent_id=None,
        body=b"stale",
        metadata=b"stale",
        fingerprint=b"stale",
        owner=owned.content.owner,
    )
    writes = TaskWrites(
        checkpoint_ns="",
        checkpoint_id=new_id(),
        task_id="stale",
        task_path="",
        writes=(TaskWrite(idx=0, channel="messages", value=b"stale"),),
        owner=owned.content.owner,
    )
    thread_hash = owned.coordinator.keys.thread_hash(lease.thread_id)
    return {
        "checkpoint": CommitWorkflowCheckpoint(thread_id=lease.thread_id, row=row, **held),
        "task writes": CommitWorkflowTaskWrites(thread_id=lease.thread_id, given=writes, **held),
        "renewal": RenewLease(ttl_us=1_000_000, **held),
        "final result": FinalizeRun.cancelled(
            reason="stale",
            thread_id=lease.thread_id,
            thread_hash=thread_hash,
            **held,
        ),
    }
