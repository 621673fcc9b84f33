"""How a run gets into the queue: started, forked from another one, or as a retry of one that has ended."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from langgraph.types import Command

from runtime_persist.adapters.workflow.starting import Start, answering
from runtime_persist.commands.fork_run import ForkRun
from runtime_persist.commands.retry_run import RetryRun
from runtime_persist.commands.start_run import StartRun
from runtime_persist.engine import Engine, Flow, requests
from runtime_persist.errors import CommandMismatch, IdempotencyMismatch, InvalidInput, UnknownGraph
from runtime_persist.model import limits
from runtime_persist.model.ids import is_name, is_short_name, new_id, thread_id_of
from runtime_persist.model.states import OnBusy
from runtime_persist.queries import control as control_queries
from runtime_persist.queries import graphs as graph_queries

if TYPE_CHECKING:
    from collections.abc import Mapping

    from runtime_persist.adapters.workflow import WorkflowCheckpointAdapter
    from runtime_persist.model.budgets import Budget
    from runtime_persist.model.retry import RetryPolicy
    from runtime_persist.plan import Row

_Queued = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What a caller says about a run beside its input. See :meth:`runtime_persist.runtime.runs.Runs.start`."""

    thread_id: str | None = None
    key: str | None = None
    deadline: float | timedelta | None = None
    retry: RetryPolicy | None = None
    priority: int = 0
    scope: str | None = None
    budget: Budget | None = None
    on_busy: str = OnBusy.ENQUEUE
    checkpoint_id: str | None = None


def start(
    saver: WorkflowCheckpointAdapter, graph: str, given: Any, terms: Terms, versions: Mapping[str, str]
) -> Flow[_Queued]:
    """Queue a run and return its id and its thread's; ``versions`` are those of the graphs bound in this process."""
    fields = _checked(terms)
    thread, on_busy = fields["thread_id"], _on_busy(terms.on_busy)
    begin: Start | None = None
    if terms.checkpoint_id is not None:
        if thread is None or not is_name(terms.checkpoint_id):
            msg = f"checkpoint_id is a text, and needs the thread_id that it is of; it is {terms.checkpoint_id!r}"
            raise InvalidInput(msg)
        begin = yield from answering(saver.context, thread, given, Start({"": terms.checkpoint_id}))
    row = yield from _registered(saver.engine, graph)
    asked = requests.request(
        saver.engine,
        saver.serde,
        graph,
        given,
        start_checkpoint_id=None if begin is None else begin.encoded(),
        graph_version=versions.get(graph) or row["version"],
        retry_policy=row["retry_policy"],
        more=() if on_busy is OnBusy.ENQUEUE else (on_busy.value,),
        **fields,
    )
    more = {"on_busy": on_busy, "begins_at": None if begin is None else begin.root}
    return (yield from _queue(requests.queue(saver.engine, asked, thread or new_id(), StartRun, **more), terms.key))


def fork(
    saver: WorkflowCheckpointAdapter,
    run: Row,
    checkpoint_id: str | None,
    given: Any,
    terms: Terms,
    versions: Mapping[str, str],
) -> Flow[_Queued]:
    """Queue a run in a new thread that begins at a checkpoint of ``run`` (None: its last one)."""
    engine, fields = saver.engine, _checked(terms)
    if checkpoint_id is None:
        checkpoint_id = yield engine.coordinator.read(
            "read_last_checkpoint",
            lambda: control_queries.last_checkpoint(engine.space, run["thread_id"], run["run_id"]),
        )
    if not is_name(checkpoint_id):
        msg = f"run {run['run_id']} has no checkpoint to begin at" if checkpoint_id is None else "not a checkpoint id"
        raise InvalidInput(msg, run_id=run["run_id"])
    begin: Start | None = None  # the copy's head: the tasks behind it have the same ids there, and find their results
    if isinstance(given, Command) and given.resume is not None:
        # Another answer to a pause that the run has left is a branch, so it must not find them.
        begin = yield from answering(saver.context, run["thread_id"], given, Start({"": checkpoint_id}))
    row = yield from _registered(engine, run["graph"])
    asked = requests.request(
        engine,
        saver.serde,
        run["graph"],
        given,
        start_checkpoint_id=None if begin is None else begin.encoded(),
        graph_version=versions.get(run["graph"]) or row["version"],
        retry_policy=row["retry_policy"],
        more=("fork", run["run_id"], checkpoint_id),
        **fields,
    )
    more = {
        "of_run_id": run["run_id"],
        "source_id": run["thread_id"],
        "source_hash": engine.coordinator.keys.thread_hash(run["thread_id"]),
        "checkpoint_id": checkpoint_id,
    }
    thread = fields["thread_id"] or new_id()
    return (yield from _queue(requests.queue(engine, asked, thread, ForkRun, **more), terms.key))


def retry(
    saver: WorkflowCheckpointAdapter, run: Row, terms: Terms, versions: Mapping[str, str], *, from_start: bool
) -> Flow[_Queued]:
    """Queue a retry of a run that has ended."""
    row = yield from _registered(saver.engine, run["graph"])
    asked = requests.request(
        saver.engine,
        saver.serde,
        run["graph"],
        None,
        graph_version=versions.get(run["graph"]) or row["version"],
        retry_policy=run["retry_policy"],
        retry_of_run_id=run["run_id"],
        more=("retry", str(from_start)),
        **_checked(terms),
    )
    more = {"run_id": run["run_id"], "from_start": from_start}
    return (yield from _queue(requests.queue(saver.engine, asked, run["thread_id"], RetryRun, **more), terms.key))


def _queue(commit: Flow[Any], key: str | None) -> Flow[_Queued]:
    try:
        receipt = yield from commit
    except CommandMismatch as error:
        msg = f"idempotency key {key!r} was already used for another request"
        raise IdempotencyMismatch(msg, idempotency_key=key) from error
    return receipt.result["run_id"], receipt.result["thread_id"]


def _registered(engine: Engine, graph: str) -> Flow[Row]:
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
    return known[graph]


def _checked(terms: Terms) -> dict[str, Any]:
    """Return the fields of a request that a caller may say (raises InvalidInput)."""
    if terms.key is not None and not is_short_name(terms.key):
        said = f"{terms.key!r:.100}"
        msg = f"idempotency_key must be a non-empty text of at most {limits.NAME_BYTES_MAX} bytes, not {said}"
        raise InvalidInput(msg)
    if terms.scope is not None and not is_short_name(terms.scope):
        msg = f"scope must be a non-empty text of at most {limits.NAME_BYTES_MAX} bytes, not {terms.scope!r:.100}"
        raise InvalidInput(msg)
    given: Any = terms.priority  # not everybody's code is type-checked
    if isinstance(given, bool) or not isinstance(given, int) or abs(given) > limits.PRIORITY_MAX:
        msg = f"priority must be a whole number from -{limits.PRIORITY_MAX} to {limits.PRIORITY_MAX}, not {given!r}"
        raise InvalidInput(msg)
    return {
        "thread_id": None if terms.thread_id is None else thread_id_of(terms.thread_id),
        "idempotency_key": terms.key,
        "retry": terms.retry,
        "deadline": seconds_of(terms.deadline),
        "priority": terms.priority,
        "scope": terms.scope,
        "budget": terms.budget,
    }


def _on_busy(given: Any) -> OnBusy:
    try:
        return OnBusy(given)
    except ValueError:
        msg = f"on_busy must be one of {', '.join(OnBusy)}, not {given!r}"
        raise InvalidInput(msg) from None


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
