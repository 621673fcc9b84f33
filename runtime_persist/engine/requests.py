"""What is asked of a run: its request, and queueing it for a worker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from runtime_persist.commands.parts.run_request import RunRequest
from runtime_persist.commands.start_run import StartRun
from runtime_persist.engine.payloads import encode
from runtime_persist.engine.tracing import starting
from runtime_persist.model.ids import new_id
from runtime_persist.model.keys import fingerprint

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langgraph.checkpoint.serde.base import SerializerProtocol

    from runtime_persist.commands.fork_run import ForkRun
    from runtime_persist.commands.retry_run import RetryRun
    from runtime_persist.coordinator import CommitReceipt
    from runtime_persist.engine.core import Engine
    from runtime_persist.engine.flow import Flow
    from runtime_persist.model.budgets import Budget
    from runtime_persist.model.retry import RetryPolicy


def request(
    engine: Engine,
    serde: SerializerProtocol,
    graph: str,
    value: Any,
    *,
    thread_id: str | None,
    idempotency_key: str | None = None,
    start_checkpoint_id: str | None = None,
    retry_of_run_id: str | None = None,
    graph_version: str | None = None,
    retry: RetryPolicy | None = None,
    retry_policy: str | None = None,
    deadline: float | None = None,
    priority: int = 0,
    scope: str | None = None,
    budget: Budget | None = None,
    more: Sequence[str] = (),
) -> RunRequest:
    """Return a run request; its fingerprint covers what the caller said, not what was made up for it.

    ``retry`` and ``deadline`` (seconds) are the caller's; ``graph_version`` and ``retry_policy`` those of the graph as
    it is registered; ``more`` is what the caller said that is no part of the request itself.
    """
    data, blobs = encode(engine, serde, value)
    said = [graph, thread_id or "", start_checkpoint_id or "", retry_of_run_id or ""]
    if retry is not None or deadline is not None:
        said += [retry.encoded() if retry else "", "" if deadline is None else repr(deadline)]
    if priority or scope is not None:  # what is not said leaves the fingerprints of keys that were used before as is
        said += [f"priority {priority}", f"scope {scope or ''}"]
    if budget is not None:
        said.append(f"budget {budget.limits()}")
    said += more
    return RunRequest(
        run_id=new_id(),
        graph=graph,
        input=data,
        fingerprint=fingerprint(*(part.encode() for part in said), data),
        owner=engine.owner,
        idempotency_key=idempotency_key,
        start_checkpoint_id=start_checkpoint_id,
        retry_of_run_id=retry_of_run_id,
        graph_version=graph_version,
        retry_policy=retry_policy if retry is None else retry.encoded(),
        deadline_in_us=None if deadline is None else round(deadline * 1_000_000),
        priority=priority,
        scope=scope,
        budget=budget,
        blobs=blobs,
    )


def thread_of(engine: Engine, thread_id: str) -> dict[str, Any]:
    """Return the fields of a thread command."""
    return {
        "space": engine.space,
        "thread_id": thread_id,
        "thread_hash": engine.coordinator.keys.thread_hash(thread_id),
    }


def queue(
    engine: Engine,
    asked: RunRequest,
    thread_id: str,
    command: type[StartRun | ForkRun | RetryRun] = StartRun,
    **fields: Any,
) -> Flow[CommitReceipt]:
    """Queue a run for a worker: by which command, and what that says besides the request.

    A key is one of the space, whichever command it came with.
    """
    key = asked.idempotency_key
    command_id = f"start_run:{key}" if key is not None else new_id()
    with starting(asked) as traced:
        receipt: CommitReceipt = yield engine.coordinator.commit(
            command(command_id=command_id, actor="user", request=traced, **thread_of(engine, thread_id), **fields),
        )
    return receipt
