"""How a graph is executed as a run: where it enters, and what its end means. Shared by owned calls and workers."""

from __future__ import annotations

import asyncio
import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from langchain_core.runnables.config import var_child_runnable_config
from langgraph.errors import GraphDrained

from runtime_persist.adapters.workflow import answers, reading, starting
from runtime_persist.engine import Engine, Flow, OwnedRun, holding, payloads, settling
from runtime_persist.errors import (
    BudgetExhausted,
    CheckpointNotFound,
    DomainsOpen,
    Fenced,
    InvariantBroken,
    OperationUnknown,
    RunNotFound,
    RunStopping,
    RuntimePersistError,
)
from runtime_persist.model import budgets
from runtime_persist.model.ids import NO_CHECKPOINT
from runtime_persist.queries import runs as run_queries
from runtime_persist.queries import tickets as ticket_queries
from runtime_persist.telemetry import AttemptScope, logger

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.pregel import Pregel
    from langgraph.runtime import RunControl
    from langgraph.types import StateSnapshot

    from runtime_persist.adapters.workflow.saver import WorkflowCheckpointAdapter
    from runtime_persist.engine.endings import Ends
    from runtime_persist.plan import Row

_log = logger("runtime_persist.runs")
_ERROR = "__error__"
_QUESTION_KEYS = ("operation_id", "name", "request", "idempotency_key", "try_no", "started_us", "reconciled")

_BUDGET_KEYS = ("budget", "limit", "reserved", "consumed", "invocation")


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
        scope: what its code runs in: log records and spans know the attempt by it.
        ends: what settles the run (default: the database, at once).
        unattended: nobody waits for the call (a worker makes it), so a node's SystemExit is a failure of the node.
        held_up: an error that could not be settled, because node code still writes to something outside.

    """

    engine: Engine
    owned: OwnedRun
    graph: Pregel[Any, Any, Any, Any]
    input: Any
    config: RunnableConfig
    control: RunControl
    scope: AttemptScope
    ends: Ends = field(default_factory=lambda: settling)
    unattended: bool = False
    held_up: BaseException | None = None

    @property
    def state_config(self) -> RunnableConfig:
        """Return the config that reads the thread's latest state."""
        return {"configurable": {"thread_id": self.owned.lease.thread_id}}

    def concluded(self, output: Any, state: StateSnapshot) -> Flow[None]:
        """Settle the run after the graph ended without an error: finished, or waiting for a person."""
        self.owned.check()
        if not state.next:
            self.scope.ended((yield from self.ends.finish(self.engine, self.owned, self._storable(output, state))))
            return
        question = {
            "kind": "interrupt" if state.interrupts else "breakpoint",
            "next": list(state.next),
            "interrupts": [{"id": found.id, "value": found.value} for found in state.interrupts],
        }
        try:
            status = yield from self.ends.wait_for_person(self.engine, self.owned, "interrupt", question)
        except RunStopping:
            status = yield from self.ends.cancel(self.engine, self.owned, self.owned.stop_reason or "cancel")
        self.scope.ended(status)

    def _storable(self, output: Any, state: StateSnapshot) -> Any:
        """Return what is kept as the run's result: the output, or the state when the output has no stored form."""
        try:
            self.owned.serde.dumps_typed(output)
        except Exception:  # noqa: BLE001 (a stream mode or an output version of the caller's choosing)
            return state.values
        return output

    def broken(self, error: BaseException) -> Flow[BaseException]:
        """Settle the run after an error and return the error the caller gets; it never hides a lost lease."""
        first, self.held_up = self.owned.error, None
        try:
            if isinstance(first, Fenced):
                return first  # the run is not ours: there is nothing to settle
            if self.unattended and settling.is_of_the_database(first or error):
                return first or error  # no failure of the run: its lease runs out, and it is taken over
            if first is not None:
                yield from self.ends.fail_attempt(self.engine, self.owned, first)
                return first
            if isinstance(error, asyncio.CancelledError):
                yield from reading.in_thread(self._mark_cancelled)
            return (yield from self._settled(error))
        except RuntimePersistError as failed:
            self.held_up = error if isinstance(failed, DomainsOpen) else None
            if isinstance(error, RuntimePersistError):
                return error  # what came first: the second one only says that settling it failed too
            failed.__cause__ = failed.__cause__ or error
            return failed
        finally:
            self.engine.heartbeats.remove(self.owned)
            self.scope.ended(None, self.owned.error or error)

    def _settled(self, error: BaseException) -> Flow[BaseException]:
        engine, owned = self.engine, self.owned
        if owned.stop_reason is not None and isinstance(error, GraphDrained | RunStopping):
            self.scope.ended((yield from self.ends.cancel(engine, owned, owned.stop_reason)))
            msg = f"run {owned.lease.run_id} was stopped ({owned.stop_reason})"
            return RunStopping(msg, run_id=owned.lease.run_id)
        if isinstance(error, GraphDrained | OperationUnknown | BudgetExhausted):
            try:
                yield from self._yielded(error)
            except RunStopping as stopping:  # no heartbeat had told it yet: it ends instead
                self.scope.ended((yield from self.ends.cancel(engine, owned, "stop")))
                return stopping
        elif self._caller_left(error):
            self.scope.ended((yield from self.ends.cancel(engine, owned, owned.stop_reason or "caller_left")))
        else:
            self.scope.ended((yield from self.ends.fail_attempt(engine, owned, error)), error)
        return error

    def _caller_left(self, error: BaseException) -> bool:
        """Return whether whoever called is leaving. Without a caller, what ends a process was raised by a node."""
        if self.unattended:
            return isinstance(error, asyncio.CancelledError)
        return isinstance(error, GeneratorExit | KeyboardInterrupt | asyncio.CancelledError | SystemExit)

    def _yielded(self, error: GraphDrained | OperationUnknown | BudgetExhausted) -> Flow[None]:
        if isinstance(error, GraphDrained):
            self.scope.ended((yield from self.ends.drain(self.engine, self.owned)))
            return
        if isinstance(error, BudgetExhausted):
            spent = {key: error.details[key] for key in _BUDGET_KEYS if key in error.details}
            ask = self.ends.wait_for_person(self.engine, self.owned, "budget", {"kind": "budget", **spent})
            self.scope.ended((yield from ask))
            return
        known = {key: error.details.get(key) for key in _QUESTION_KEYS}
        question = {"kind": "unknown_operation", **known}
        self.scope.ended((yield from self.ends.wait_for_person(self.engine, self.owned, "ask", question)))

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
    yield from holding.renew(outer)
    return outer


def scope_of(owned: OwnedRun) -> AttemptScope:
    """Return the scope that the code of a run's attempt runs in."""
    return AttemptScope(
        traceparent=owned.traceparent,
        run_id=owned.lease.run_id,
        attempt_id=owned.attempt_id,
        epoch=owned.lease.epoch,
        graph=owned.graph,
        thread_id=owned.lease.thread_id,
    )


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
    return Execution(engine, owned, bound_copy(graph, saver.session(owned)), given, own, control, scope_of(owned))


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
    owned.traceparent = run["traceparent"]
    owned.budgeted, owned.limits_invocations = budgets.is_limited(run), budgets.limits_invocations(run)
    if owned.budgeted:
        yield from _check_budget(owned)
    start = starting.Start.decoded(run["start_checkpoint_id"])
    owned.branch = None if start is None else start.owned_branch()
    engine = saver.engine
    if _is_new(run):
        given = yield from payloads.decode(engine, owned.serde, run["input"], f"the input of run {run['run_id']}")
        return (yield from _begins(saver, owned, graph, given, config, control, start))
    session = saver.session(owned)
    head = yield from reading.get_tuple(session.context, {"configurable": {"thread_id": owned.lease.thread_id}})
    where = f"of run {owned.lease.run_id}"
    lease, is_retry = owned.lease, run["retry_of_run_id"] is not None
    resumes = yield from answers.resumed(engine, lease.thread_id, lease.run_id, is_retry=is_retry)
    owned.answered = answers.hides(resumes)
    if run["answer"] is not None:
        answer = yield from payloads.decode(engine, owned.serde, run["answer"], f"the answer {where}")
        at_head = head is not None and head.checkpoint["id"] == answer["checkpoint_id"]
        if at_head and not any(row["since"] for row in resumes):
            return execution(saver, owned, graph, answer["command"], config, control)
        left = (yield from answers.left_of(engine, owned, answer["command"], resumes)) if at_head else None
        if left is not None:
            return execution(saver, owned, graph, left, config, control)
    given = yield from payloads.decode(engine, owned.serde, run["input"], f"the input {where}")
    if head is not None and (head.metadata or {}).get("run_id") == owned.lease.run_id:
        return execution(saver, owned, graph, given, config, control)
    if (yield from _began(owned)):  # a person edited the state meanwhile: its input is not given a second time
        return execution(saver, owned, graph, None, config, control)
    return (yield from _begins(saver, owned, graph, given, config, control, start))


def _is_new(run: Row) -> bool:
    """Return whether nothing of a run is stored yet: it was never executed, and no other run goes on in it."""
    return run["attempt_no"] == 1 and run["answer"] is None and run["retry_of_run_id"] is None


def _begins(
    saver: WorkflowCheckpointAdapter,
    owned: OwnedRun,
    graph: Pregel[Any, Any, Any, Any],
    given: Any,
    config: RunnableConfig,
    control: RunControl,
    start: starting.Start | None,
) -> Flow[Execution]:
    """Return the execution that enters with the run's input, at its start (raises CheckpointNotFound)."""
    if start is not None and start.root != NO_CHECKPOINT and not (yield owned.stored(start.root)):
        msg = f"the checkpoint {start.root} that run {owned.lease.run_id} begins at was pruned since it was started"
        raise CheckpointNotFound(msg, thread_id=owned.lease.thread_id, checkpoint_id=start.root)
    return execution(saver, owned, graph, given, config, control, start)


def _check_budget(owned: OwnedRun) -> Flow[None]:
    """Raise InvariantBroken when the counters of a run are not what its tickets add up to; nothing is repaired."""
    lease = owned.lease
    wrong = yield owned.coordinator.read(
        "read_wrong_budget", lambda: ticket_queries.is_wrong(lease.space, lease.run_id), snapshot=True
    )
    if wrong:
        msg = f"the counters of run {lease.run_id}'s budget are not what its tickets add up to; nothing was changed"
        raise InvariantBroken(msg, run_id=lease.run_id)


def _began(owned: OwnedRun) -> Flow[bool]:
    lease = owned.lease
    found: bool = yield owned.coordinator.read(
        "read_began",
        lambda: run_queries.began(lease.space, lease.thread_id, lease.run_id),
    )
    return found


def run_row(owned: OwnedRun) -> Flow[Row]:
    """Return the run's row: as its claim has saved it, or as it is read."""
    known, owned.row = owned.row, None
    if known is not None:
        return known
    lease = owned.lease
    row = yield owned.coordinator.read("read_run", lambda: run_queries.run(lease.space, lease.run_id))
    if row is None:
        msg = f"there is no run {lease.run_id!r}"
        raise RunNotFound(msg, run_id=lease.run_id)
    found: Row = row
    return found
