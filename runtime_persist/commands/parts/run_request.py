"""What a run is asked to do, and the row that makes of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from runtime_persist.commands.parts import run_rows

if TYPE_CHECKING:
    from runtime_persist.model.budgets import Budget
    from runtime_persist.model.payload import Blob
    from runtime_persist.plan import Row


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """What a run is asked to do.

    Attributes:
        run_id: id for the new run.
        graph: name of the graph.
        input: encoded payload reference of the graph's input.
        fingerprint: of graph, input and thread as the caller gave them.
        idempotency_key: the same key with the same request is the same run.
        start_checkpoint_id: checkpoint to start from (None: the head).
        retry_of_run_id: the finished run that a person retries with this one.
        graph_version: version of the graph's definition (None: a worker with any version may execute it).
        retry_policy: encoded (None: a failure is final).
        deadline_in_us: microseconds from its start after which it is stopped (None: never).
        priority: the higher goes first.
        scope: of which at most one run is active at a time (None: its thread).
        budget: what its calls may take (None: any).
        traceparent: trace context that its attempts go on from (None: none).
        owner: owner of the content.
        blobs: content that ``input`` refers to.

    """

    run_id: str
    graph: str
    input: bytes
    fingerprint: bytes
    owner: str
    idempotency_key: str | None = None
    start_checkpoint_id: str | None = None
    retry_of_run_id: str | None = None
    graph_version: str | None = None
    retry_policy: str | None = None
    deadline_in_us: int | None = None
    priority: int = 0
    scope: str | None = None
    budget: Budget | None = None
    traceparent: str | None = None
    blobs: tuple[Blob, ...] = ()

    def row(self, thread: Row, now: int) -> dict[str, Any]:
        """Return the row of the new run: the last one of its thread."""
        return run_rows.new_run(
            {
                "space": thread["space"],
                "run_id": self.run_id,
                "graph": self.graph,
                "thread_id": thread["thread_id"],
                "thread_run_no": thread["run_no"] + 1,
                "idempotency_key": self.idempotency_key,
                "request_fingerprint": self.fingerprint,
                "input": self.input,
                "start_checkpoint_id": self.start_checkpoint_id,
                "retry_of_run_id": self.retry_of_run_id,
                "graph_version": self.graph_version,
                "retry_policy": self.retry_policy,
                "deadline_us": None if self.deadline_in_us is None else now + self.deadline_in_us,
                "priority": self.priority,
                "scope": self.scope,
                "traceparent": self.traceparent,
                **(self.budget.limits() if self.budget is not None else {}),
            },
            now,
        )
