"""How a graph is executed as a run: where it enters, and what its end means. Shared by owned calls and workers."""

from __future__ import annotations

import asyncio
import copy
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from langchain_core.runnables.config import var_child_runnable_config
from langgraph.errors import GraphDrained

from runtime_persist.adapters.workflow import encoding, reading, starting
from runtime_persist.engine import Engine, Flow, OwnedRun, ownership
from runtime_persist.errors import (
    Fenced,
    OperationUnknown,
    RunNotFound,
    RunStopping,
    RuntimePersistError,
)
from runtime_persist.queries import runs as run_queries

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.pregel import Pregel
    from langgraph.runtime import RunControl
    from langgraph.types import StateSnapshot

    from runtime_persist.adapters.workflow.saver import WorkflowCheckpointAdapter
    from runtime_persist.plan import Row

_log = logging.getLogger("runtime_persist.runs")
_ERROR = "__error__"
_QUESTION_KEYS = ("operation_id", "name", "request", "idempotency_key", "try_no", "started_us")


@dataclass(slots=True)
class Execution:
    """One attempt at executing a graph as a run.

    Attributes:
        engine: the opened database.
        owned: the run.
        graph: a copy of the user's graph that writes under the run's lease.
        input: what the graph is invoked with.
        config: and its config.
        control: asks LangGraph's loop to stop at its next step.

    """

    engine: Engine
    owned: OwnedRun
    graph: Pregel[Any, Any, Any, Any]
    input: Any
    config: RunnableConfig
    control: RunControl

    @property
    def state_config(self) -> RunnableConfig:
        """Return the config that reads the thread's latest state."""
        return {"configurable": {"thread_id": self.owned.lease.thread_id}}

    def concluded(self, output: Any, state: StateSnapshot) -> Flow[None]:
        """Settle the run after the graph ended without an error: finished, or waiting for a person."""
        self.owned.check()
        if not state.next:
            yield from ownership.finish(self.engine, self.owned, self._storable(output, state))
            return
        question = {
            "kind": "interrupt" if state.interrupts else "breakpoint",
            "next": list(state.next),
            "interrupts": [{"id": found.id, "value": found.value} for found in state.interrupts],
        }
        try:
            yield from ownership.wait_for_person(self.engine, self.owned, "interrupt", question)
        except RunStopping:
            yield from ownership.cancel(self.engine, self.owned, self.owned.stop_reason or "cancel")

    def _storable(self, output: Any, state: StateSnapshot) -> Any:
        """Return what is kept as the run's result: the output, or the state when the output has no stored form."""
        try:
            self.owned.serde.dumps_typed(output)
        except Exception:  # noqa: BLE001 (a stream mode or an output version of the caller's choosing)
            return state.values
        return output

    def broken(self, error: BaseException) -> Flow[BaseException]:
        """Settle the run after an error and return the error the caller gets; it never hides a lost lease."""
        first = self.owned.error
        try:
            if isinstance(first, Fenced):
                return first  # the run is not ours: there is nothing to settle
            if first is not None:
                yield from ownership.fail_attempt(self.engine, self.owned, first)
                return first
            if isinstance(error, asyncio.CancelledError):
                yield from reading.in_thread(self._mark_cancelled)
            return (yield from self._settled(error))
        except RuntimePersistError as failed:
            if isinstance(error, RuntimePersistError):
                return error  # what came first: the second one only says that settling it failed too
            failed.__cause__ = failed.__cause__ or error
            return failed
        finally:
            self.engine.heartbeats.remove(self.owned)

    def _settled(self, error: BaseException) -> Flow[BaseException]:
        engine, owned = self.engine, self.owned
        if owned.stop_reason is not None and isinstance(error, GraphDrained | RunStopping):
            yield from ownership.cancel(engine, owned, owned.stop_reason)
            msg = f"run {owned.lease.run_id} was stopped ({owned.stop_reason})"
            return RunStopping(msg, run_id=owned.lease.run_id)
        if isinstance(error, GraphDrained | OperationUnknown):
            try:
                yield from self._yielded(error)
            except RunStopping as stopping:  # no heartbeat had told it yet: it ends instead
                yield from ownership.cancel(engine, owned, "stop")
                return stopping
        elif isinstance(error, Exception):
            yield from ownership.fail_attempt(engine, owned, error)
        elif isinstance(error, GeneratorExit | KeyboardInterrupt | asyncio.CancelledError | SystemExit):
            yield from ownership.cancel(engine, owned, owned.stop_reason or "caller_left")
        return error

    def _yielded(self, error: GraphDrained | OperationUnknown) -> Flow[None]:
        if isinstance(error, GraphDrained):
            yield from ownership.drain(self.engine, self.owned)
            return
        known = {key: error.details.get(key) for key in _QUESTION_KEYS}
        yield from ownership.wait_for_person(self.engine, self.owned, "ask", {"kind": "unknown_operation", **known})

    def _mark_cancelled(self) -> None:
        """Note which tasks were cancelled. They run again either way; this tells them from tasks that never began.

        LangGraph notes it too, but does not wait until that is stored, and with durability="exit" it stores the state
        before it cancels them.
        """
        session = cast("WorkflowCheckpointAdapter", self.graph.checkpointer)
        try:
            state = self.graph.get_state(self.state_config)
            head = session.get_tuple(state.config)
            wrote = {task_id for task_id, *_ in (head and head.pending_writes) or ()}
            for task in state.tasks:
                if task.id not in wrote:
                    session.put_writes(state.config, [(_ERROR, asyncio.CancelledError())], task.id)
        except Exception:  # noqa: BLE001 (a mark that is missing must not keep the run from ending)
            _log.warning("the cancelled tasks of run %s are not marked", self.owned.lease.run_id, exc_info=True)


def bound_copy(
    graph: Pregel[Any, Any, Any, Any],
    saver: WorkflowCheckpointAdapter,
) -> Pregel[Any, Any, Any, Any]:
    """Return a copy of a graph with another saver; copy.copy keeps what Pregel.copy() drops (contract §0.1)."""
    bound = copy.copy(graph)
    bound.checkpointer = saver
    return bound


def outer_run() -> Flow[OwnedRun | None]:
    """Return the run in whose node the caller is (None: in none), once it is sure that it is still this process's.

    Raises:
        LeaseLost, LeaseExpired: it is not; nothing of it may start a run.

    """
    ambient = (var_child_runnable_config.get() or {}).get("configurable") or {}
    outer = getattr(ambient.get("__pregel_checkpointer"), "owned_run", None)
    if not isinstance(outer, OwnedRun):
        return None
    yield from ownership.renew(outer)
    return outer


def execution(
    saver: WorkflowCheckpointAdapter,
    owned: OwnedRun,
    graph: Pregel[Any, Any, Any, Any],
    given: Any,
    config: RunnableConfig,
    control: RunControl,
    start: starting.Start | None = None,
) -> Execution:
    """Return an execution that enters with ``given``, at a start (see :mod:`starting`) or at the latest state."""
    owned.drain_with(control)
    if start is not None:
        owned.branch = start.owned_branch()
    configurable = starting.addressed(config.get("configurable") or {}, start)
    configurable |= {"thread_id": owned.lease.thread_id, "run_id": owned.lease.run_id}
    own: RunnableConfig = {**config, "configurable": configurable}
    engine = saver.engine
    return Execution(engine, owned, bound_copy(graph, saver.session(owned)), given, own, control)


def reentry(
    saver: WorkflowCheckpointAdapter,
    owned: OwnedRun,
    graph: Pregel[Any, Any, Any, Any],
    config: RunnableConfig,
    control: RunControl,
) -> Flow[Execution]:
    """Return the execution of a further attempt: it starts or resumes, as needed.

    With ``configurable.run_id`` equal to the head's, LangGraph resumes and ignores the input; with nothing of this
    run stored it starts with it (contract §4.3). A person's answer is sent as long as it was not stored; one that the
    asking task has taken up is hidden, because LangGraph would give it to the next question of that task too.
    """
    run = yield from run_row(owned)
    start = starting.Start.decoded(run["start_checkpoint_id"])
    owned.branch = None if start is None else start.owned_branch()
    engine = saver.engine
    session = saver.session(owned)
    head = yield from reading.get_tuple(session.context, {"configurable": {"thread_id": owned.lease.thread_id}})
    where = f"of run {owned.lease.run_id}"
    resumes = yield from _resumes(owned)
    taken_up = any(row["task_id"] != encoding.NULL_TASK for row in resumes if row["since"])
    waits_again = bool(resumes) and not any(row["since"] for row in resumes)
    owned.answered = taken_up or waits_again
    if run["answer"] is not None:
        answer = yield from ownership.decode(engine, owned.serde, run["answer"], f"the answer {where}")
        at_head = head is not None and head.checkpoint["id"] == answer["checkpoint_id"]
        if at_head and not any(row["since"] for row in resumes):
            return execution(saver, owned, graph, answer["command"], config, control)
    given = yield from ownership.decode(engine, owned.serde, run["input"], f"the input {where}")
    if head is not None and (head.metadata or {}).get("run_id") == owned.lease.run_id:
        return execution(saver, owned, graph, given, config, control)
    if (yield from _began(owned)):  # a person edited the state meanwhile: its input is not given a second time
        return execution(saver, owned, graph, None, config, control)
    return execution(saver, owned, graph, given, config, control, start)


def _began(owned: OwnedRun) -> Flow[bool]:
    lease = owned.lease
    found: bool = yield owned.coordinator.read(
        "read_began",
        lambda: run_queries.began(lease.space, lease.thread_id, lease.run_id),
    )
    return found


def _resumes(owned: OwnedRun) -> Flow[list[Row]]:
    lease = owned.lease
    rows = yield owned.coordinator.read(
        "read_resumes",
        lambda: run_queries.resumes(lease.space, lease.thread_id, lease.run_id, encoding.RESUME),
    )
    found: list[Row] = rows
    return found


def run_row(owned: OwnedRun) -> Flow[Row]:
    """Read the run's row."""
    lease = owned.lease
    row = yield owned.coordinator.read("read_run", lambda: run_queries.run(lease.space, lease.run_id))
    if row is None:
        msg = f"there is no run {lease.run_id!r}"
        raise RunNotFound(msg, run_id=lease.run_id)
    found: Row = row
    return found
