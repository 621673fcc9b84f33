"""What a process does before the one that dies, and after it: steps on a stage, each through the coordinator."""

from dataclasses import replace
from typing import Any

import ormsgpack
import pytest
from langgraph.checkpoint.base import WRITES_IDX_MAP
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.serde.types import INTERRUPT
from uuid_utils import uuid7

from runtime_persist.commands.begin_operation import BeginOperation
from runtime_persist.commands.claim_next import ClaimNext
from runtime_persist.commands.claim_run import ClaimRun
from runtime_persist.commands.commit_workflow_checkpoint import CommitWorkflowCheckpoint
from runtime_persist.commands.commit_workflow_task_writes import CommitWorkflowTaskWrites
from runtime_persist.commands.complete_operation import CompleteOperation
from runtime_persist.commands.parts.checkpoint_rows import CheckpointRow
from runtime_persist.commands.parts.spec import Command
from runtime_persist.commands.parts.write_rows import TaskWrite, TaskWrites
from runtime_persist.commands.put_thread_checkpoint import PutThreadCheckpoint
from runtime_persist.commands.register_graph import RegisterGraph
from runtime_persist.commands.renew_lease import RenewLease
from runtime_persist.commands.start_attempt import StartAttempt
from runtime_persist.commands.start_owned_run import StartOwnedRun
from runtime_persist.contentstore import pack
from runtime_persist.coordinator import CommitReceipt
from runtime_persist.engine import OwnedRun, dispatch, ownership, payloads, requests, run, settling
from runtime_persist.errors import LeaseLost
from runtime_persist.model.ids import new_id
from runtime_persist.model.keys import fingerprint
from runtime_persist.model.payload import PayloadRef
from runtime_persist.queries.operations import OperationKey
from runtime_persist.testing.faults import Rows, check_invariants, read_rows
from tests.faults.kit import Stage
from tests.support.capacity import reported

SERDE = JsonPlusSerializer()
GRAPH = "graph"
INLINE_BYTES = 128
RUN_REF = "a run as LangGraph names it"
ALWAYS_FRESH = {"commit_workflow_task_writes", "put_thread_writes", "replace_thread_checkpoint"}
"""Commands that answer a second time as the first time: what is there already stays, or is the same."""


def commit(stage: Stage, command: Command) -> CommitReceipt:
    return stage.engine.coordinator.commit(command).result()


def rows(stage: Stage) -> Rows:
    return read_rows(stage.engine, stage.thread_id)


def check(stage: Stage) -> Rows:
    """Check the invariants and return the rows."""
    found = rows(stage)
    assert check_invariants(found) == []
    return found


def thread(stage: Stage) -> dict[str, Any]:
    return requests.thread_of(stage.engine, stage.thread_id) | {"command_id": new_id()}


def leased(stage: Stage, owned: OwnedRun) -> dict[str, Any]:
    """The fields of a command under a lease."""
    return {
        "space": stage.engine.space,
        "command_id": new_id(),
        "run_id": owned.lease.run_id,
        "epoch": owned.lease.epoch,
    }


def large(stage: Stage, what: str) -> str:
    """A value of this thread alone that is too large to lie in a row."""
    return f"{what} of {stage.thread_id} " * 2_000


# --- runs -----------------------------------------------------------------------------------------------------------


def request(stage: Stage, value: Any = "question") -> Any:
    """A run with a scope of its own, of a graph with a limit: what takes a place passes every gate."""
    limit = RegisterGraph(space=stage.engine.space, command_id=new_id(), graph=GRAPH, max_concurrency=1_000_000)
    commit(stage, limit)
    named = {name: f"{name} of {stage.thread_id}" for name in ("scope", "graph_version")}
    named["thread_id"] = stage.thread_id
    return requests.request(stage.engine, SERDE, GRAPH, value, **named)


def start_owned(stage: Stage) -> StartOwnedRun:
    return StartOwnedRun(
        request=request(stage, large(stage, "input")),
        worker_id="victim",
        attempt_id=new_id(),
        ttl_us=stage.engine.ttl_us,
        **thread(stage),
    )


def own(stage: Stage) -> OwnedRun:
    """Start a run and own it: running under a live lease."""
    owned = run(ownership.start(stage.engine, SERDE, request(stage), stage.thread_id))
    stage.engine.heartbeats.remove(owned)
    return owned


def queue(stage: Stage) -> str:
    receipt = run(requests.queue(stage.engine, request(stage), stage.thread_id))
    return str(receipt.result["run_id"])


def claim(stage: Stage, run_id: str) -> OwnedRun:
    candidate = {"run_id": run_id, "thread_id": stage.thread_id, "graph": GRAPH}
    owned, _ = run(ownership.claim(stage.engine, SERDE, candidate, instance_id=reported(stage.engine)))
    stage.engine.heartbeats.remove(owned)
    return owned


def claim_command(stage: Stage, run_id: str) -> ClaimRun:
    fields = {"worker_id": "victim", "attempt_id": new_id(), "instance_id": reported(stage.engine, "victim")}
    return ClaimRun(run_id=run_id, ttl_us=stage.engine.ttl_us, **fields, **thread(stage))


def next_command(
    stage: Stage, kind: str, *, others: tuple[str, ...] = (), waits: bool = False, starts: bool = False
) -> ClaimNext:
    """A claim of the graph's next run, which is the only one that has this version; beside others it takes no turn."""
    (served_no,) = (row["served_no"] for row in rows(stage)["graphs"] if row["graph"] == GRAPH)
    return ClaimNext(
        space=stage.engine.space,
        command_id=new_id(),
        graph=GRAPH,
        kind=kind,
        versions=(f"graph_version of {stage.thread_id}",),
        worker_id="victim",
        instance_id=reported(stage.engine, "victim"),
        attempt_id=new_id(),
        ttl_us=stage.engine.ttl_us,
        served_no=None if others else served_no,
        others=others,
        waits=waits,
        starts=starts,
    )


def take_over(stage: Stage, run_id: str) -> OwnedRun:
    """Let the lease run out, claim and activate the run; whoever had it before is refused."""
    (before,) = (row for row in rows(stage)["runs"] if row["run_id"] == run_id)
    stage.expire(run_id)
    owned = claim(stage, run_id)
    assert owned.lease.epoch == before["epoch"] + 1
    with pytest.raises(LeaseLost):
        commit(stage, RenewLease(ttl_us=1, **leased(stage, owned) | {"epoch": before["epoch"]}))
    run(dispatch.activate(owned))
    return owned


def finish(stage: Stage, owned: OwnedRun) -> None:
    """End the run; it ends once."""
    assert run(settling.finish(stage.engine, owned, "done")) == "succeeded"
    found = check(stage)
    ends = [event for event in found["events"] if event["type"] == "run.succeeded"]
    assert [event["run_id"] for event in ends].count(owned.lease.run_id) == 1


def take_over_and_finish(stage: Stage, run_id: str) -> None:
    finish(stage, take_over(stage, run_id))


# --- checkpoints and writes -----------------------------------------------------------------------------------------


def checkpoint_row(stage: Stage, parent_id: str | None, what: str) -> CheckpointRow:
    """A checkpoint whose value lies in the content store."""
    writer = stage.engine.content.writer()
    checkpoint = {
        "v": 4,
        "id": str(uuid7()),
        "ts": "2026-01-01T00:00:00+00:00",
        "channel_versions": {"messages": "1"},
        "versions_seen": {},
        "updated_channels": None,
    }
    manifest = {"messages": writer.put(*SERDE.dumps_typed(large(stage, what)), INLINE_BYTES).packed()}
    body = pack(ormsgpack.packb([2, *SERDE.dumps_typed(checkpoint), manifest]))
    metadata = inline({"run_id": RUN_REF})
    return CheckpointRow(
        checkpoint_ns="",
        checkpoint_id=checkpoint["id"],
        parent_id=parent_id,
        body=body,
        metadata=metadata,
        fingerprint=fingerprint((parent_id or "").encode(), body, metadata),
        owner=writer.owner,
        blobs=writer.blobs(),
        run_ref=RUN_REF,
    )


def inline(value: Any) -> bytes:
    kind, data = SERDE.dumps_typed(value)
    return PayloadRef(kind, len(data), inline=data).encoded()


def checkpoint(stage: Stage, owned: OwnedRun, parent_id: str | None) -> CommitWorkflowCheckpoint:
    return CommitWorkflowCheckpoint(
        thread_id=stage.thread_id, row=checkpoint_row(stage, parent_id, "state"), **leased(stage, owned)
    )


def put(stage: Stage, parent_id: str | None) -> PutThreadCheckpoint:
    """A put without a lease that expects its parent to be the head."""
    return PutThreadCheckpoint(
        row=checkpoint_row(stage, parent_id, "state"),
        expects_head=True,
        expected_head=parent_id,
        **thread(stage),
    )


def given(stage: Stage) -> TaskWrites:
    """Two regular writes, one of them large, and a special one."""
    writer = stage.engine.content.writer()
    ref = writer.put(*SERDE.dumps_typed(large(stage, "write")), INLINE_BYTES)
    writes = (
        TaskWrite(idx=0, channel="messages", value=ref.encoded()),
        TaskWrite(idx=1, channel="step", value=inline(1)),
        TaskWrite(idx=WRITES_IDX_MAP[INTERRUPT], channel=INTERRUPT, value=inline("why")),
    )
    return TaskWrites(
        checkpoint_ns="",
        checkpoint_id=str(uuid7()),
        task_id="task",
        task_path="path",
        writes=writes,
        owner=writer.owner,
        blobs=writer.blobs(),
    )


def task_writes(stage: Stage, owned: OwnedRun) -> CommitWorkflowTaskWrites:
    return CommitWorkflowTaskWrites(thread_id=stage.thread_id, given=given(stage), **leased(stage, owned))


# --- operations -----------------------------------------------------------------------------------------------------


def begin(stage: Stage, owned: OwnedRun) -> BeginOperation:
    return BeginOperation(
        key=OperationKey(thread_id=stage.thread_id, checkpoint_ns="node:task", name="pay", ordinal="#1"),
        operation_id=new_id(),
        request_fingerprint=fingerprint(b"pay 5"),
        request="pay 5",
        idempotency_key="key",
        on_unknown="ask",
        node_attempt=1,
        **leased(stage, owned),
    )


def begin_again(command: BeginOperation, owned: OwnedRun) -> BeginOperation:
    """What the node sends when it runs again in other hands: the same identity, made anew."""
    return replace(command, epoch=owned.lease.epoch, command_id=new_id(), operation_id=new_id())


def complete(stage: Stage, owned: OwnedRun, operation_id: str, try_no: int = 1) -> CompleteOperation:
    data, blobs = payloads.encode(stage.engine, SERDE, large(stage, "receipt"))
    return CompleteOperation.succeeded(
        result=data,
        outcome=fingerprint(data),
        owner=stage.engine.owner,
        blobs=blobs,
        operation_id=operation_id,
        name="pay",
        try_no=try_no,
        **leased(stage, owned),
    )


def start_try(stage: Stage, owned: OwnedRun, operation_id: str, try_no: int) -> StartAttempt:
    return StartAttempt(operation_id=operation_id, name="pay", try_no=try_no, node_attempt=1, **leased(stage, owned))


def activate(owned: OwnedRun) -> None:
    run(dispatch.activate(owned))
