"""What is asked of a run before it runs: the request that ``runs.start`` queues."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from runtime_persist.engine import Engine, Flow, ownership
from runtime_persist.errors import CommandMismatch, IdempotencyMismatch, InvalidInput, UnknownGraph
from runtime_persist.model import limits
from runtime_persist.model.ids import is_name, new_id, thread_id_of
from runtime_persist.queries import graphs as graph_queries

if TYPE_CHECKING:
    from collections.abc import Mapping

    from langgraph.checkpoint.serde.base import SerializerProtocol

    from runtime_persist.model.retry import RetryPolicy
    from runtime_persist.plan import Row


def queue(
    engine: Engine,
    serde: SerializerProtocol,
    graph: str,
    given: Any,
    *,
    thread_id: str | None,
    key: str | None,
    deadline: float | timedelta | None,
    retry: RetryPolicy | None,
    versions: Mapping[str, str],
) -> Flow[tuple[str, str]]:
    """Queue a run and return its id and its thread's; ``versions`` are those of the graphs bound in this process."""
    seconds = seconds_of(deadline)
    thread = None if thread_id is None else thread_id_of(thread_id)
    if key is not None and not is_name(key):
        msg = f"idempotency_key must be a non-empty text, not {key!r}"
        raise InvalidInput(msg)
    known: dict[str, Row] = yield engine.coordinator.read(
        "read_graphs",
        lambda: graph_queries.registered(engine.space),
    )
    if graph not in known:
        msg = (
            f"no graph is registered as {graph!r} in space {engine.space!r} (known: {', '.join(known) or 'none'}); "
            "bind it with runtime.bind(graph, name=…) or start a worker that has it"
        )
        raise UnknownGraph(msg, graph=str(graph))
    asked = ownership.request(
        engine,
        serde,
        graph,
        given,
        thread_id=thread,
        idempotency_key=key,
        graph_version=versions.get(graph) or known[graph]["version"],
        retry=retry,
        retry_policy=known[graph]["retry_policy"],
        deadline=seconds,
    )
    try:
        receipt = yield from ownership.queue(engine, asked, thread or new_id())
    except CommandMismatch as error:
        msg = f"idempotency key {key!r} was already used for another request"
        raise IdempotencyMismatch(msg, idempotency_key=key) from error
    return receipt.result["run_id"], receipt.result["thread_id"]


def seconds_of(deadline: float | timedelta | None) -> float | None:
    """Return a deadline in seconds (raises InvalidInput)."""
    seconds = deadline.total_seconds() if isinstance(deadline, timedelta) else deadline
    if seconds is None:
        return None
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        msg = f"deadline must be seconds or a timedelta, not {seconds!r}"
        raise InvalidInput(msg)
    if not 0 < seconds <= limits.DEADLINE_SECONDS_MAX:
        msg = f"deadline must be more than 0 and at most {limits.DEADLINE_SECONDS_MAX:.0f} seconds, not {seconds}"
        raise InvalidInput(msg, deadline=seconds)
    return float(seconds)
