"""What a person says to a run that waits: the answer to a question, or what became of an operation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from runtime_persist.commands.answer_question import AnswerQuestion
from runtime_persist.commands.resolve_unknown import ResolveUnknown
from runtime_persist.engine import Engine, Flow, ownership
from runtime_persist.errors import OperationNotFound
from runtime_persist.model.ids import new_id
from runtime_persist.model.keys import fingerprint
from runtime_persist.model.states import RunStatus
from runtime_persist.queries import checkpoints as checkpoint_queries
from runtime_persist.queries import operations as operation_queries
from runtime_persist.queries import runs as run_queries

if TYPE_CHECKING:
    from collections.abc import Mapping

    from langgraph.checkpoint.serde.base import SerializerProtocol

    from runtime_persist.plan import Row


def answer(engine: Engine, serde: SerializerProtocol, row: Row, command: Any) -> Flow[str]:
    """Store the answer to what a run (its row) asks, at the checkpoint it asks at; return the run's status."""
    head = yield engine.coordinator.read(
        "read_head",
        lambda: checkpoint_queries.head(engine.space, row["thread_id"]),
    )
    data, blobs = ownership.encode(engine, serde, {"checkpoint_id": head, "command": command})
    receipt = yield engine.coordinator.commit(
        AnswerQuestion(
            space=engine.space,
            command_id=new_id(),
            actor="user",
            run_id=row["run_id"],
            answer=data,
            owner=engine.owner,
            blobs=blobs,
        ),
    )
    return str(receipt.result["status"])


def resolve(engine: Engine, serde: SerializerProtocol, operation_id: str, *, happened: bool, result: Any) -> Flow[str]:
    """Store what became of an operation whose outcome is unknown; return the status of the run that asks."""
    row: Mapping[str, Any] | None = yield engine.coordinator.read(
        "read_operation",
        lambda: operation_queries.by_id(engine.space, operation_id),
    )
    if row is None:
        msg = f"there is no operation {operation_id!r} in space {engine.space!r}"
        raise OperationNotFound(msg, operation_id=operation_id)
    # The run that asks is the thread's waiting one: in a copied thread that is not the run that tried.
    thread_id = row["thread_id"]
    found = yield engine.coordinator.read("read_open_runs", lambda: run_queries.open_of_thread(engine.space, thread_id))
    asking = [one["run_id"] for one in found if one["status"] == RunStatus.WAITING_APPROVAL]
    data, blobs = ownership.encode(engine, serde, result) if happened else (None, ())
    receipt = yield engine.coordinator.commit(
        ResolveUnknown(
            space=engine.space,
            command_id=new_id(),
            actor="user",
            run_id=asking[0] if asking else row["try_run_id"],
            operation_id=operation_id,
            happened=happened,
            result=data,
            outcome=fingerprint(data or b""),
            owner=engine.owner,
            blobs=blobs,
        ),
    )
    return str(receipt.result["run_status"])
