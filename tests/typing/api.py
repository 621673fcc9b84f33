# ruff: noqa: TC002, TC003 (read as a user writes it)
"""The public API as users write it, checked by ``mypy --strict``; never run.

A line with ``type: ignore`` must be an error: strict mode reports an ignore that is not needed.
"""

import logging
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.graph import START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command
from opentelemetry.sdk.trace import TracerProvider
from typing_extensions import TypedDict

from runtime_persist import Question, Run, Runtime, operation
from runtime_persist.adapters.workflow import BoundGraph, WorkflowCheckpointAdapter
from runtime_persist.errors import LeaseLost, RuntimePersistError, StaleWriter, ThreadOwned
from runtime_persist.telemetry import JsonFormatter, RunFilter, configure


class State(TypedDict):
    total: int


@operation(name="charge", on_unknown="retry")
def charge(order: str, cents: int, *, idempotency_key: str) -> int:
    return len(order) + cents + len(idempotency_key)


@operation(name="fetch", key=lambda url: url)
async def fetch(url: str) -> str:
    return url


@operation(name="wrong", on_unknown="guess")  # type: ignore[arg-type]
def wrong() -> None: ...


operation("positional")  # type: ignore[call-arg]


def node(state: State) -> State:
    total: int = charge("order-7", 42)
    nothing: str = charge("order-7", 42)  # type: ignore[assignment]
    return {"total": state["total"] + total + len(nothing)}


async def async_node(state: State) -> State:
    page: str = await fetch("https://example.com")
    return {"total": state["total"] + len(page)}


def build() -> CompiledStateGraph[State, None, State, State]:
    builder = StateGraph(State)
    builder.add_node("node", node)
    builder.add_node("async_node", async_node)
    builder.add_edge(START, "node")
    return builder.compile()


def drop_in(path: Path) -> None:
    with WorkflowCheckpointAdapter.from_conn_string("sqlite:///agents.db", space="mine", concurrency="unsafe") as saver:
        plain: BaseCheckpointSaver[str] = saver
        builder = StateGraph(State)
        builder.compile(checkpointer=plain)
        config: RunnableConfig = {"configurable": {"thread_id": "t1"}}
        found: CheckpointTuple | None = saver.get_tuple(config)
        several: Iterator[CheckpointTuple] = saver.list(config, limit=3)
        later: AsyncIterator[CheckpointTuple] = saver.alist(None)
        saver.put_writes(config, [("total", 1)], "task")
        saver.delete_thread("t1")
        del found, several, later
    WorkflowCheckpointAdapter.from_conn_string(path).close()
    WorkflowCheckpointAdapter.from_conn_string(path, conncurrency="unsafe")  # type: ignore[call-arg]


def owned(runtime: Runtime) -> Any:
    durable: BoundGraph = runtime.bind(build(), name="support")
    config: RunnableConfig = {"configurable": {"thread_id": "t1"}}
    try:
        durable.invoke({"total": 0}, config, durability="sync")
    except (LeaseLost, ThreadOwned, StaleWriter) as error:
        code: str = error.code
        details: dict[str, Any] = error.details
        base: RuntimePersistError = error
        native: RuntimeError = base
        del code, details, native
    for chunk in durable.stream(None, config, stream_mode="updates"):
        del chunk
    outputs: list[Any] = durable.batch([{"total": 0}, {"total": 1}], config, return_exceptions=True)
    values: Any = durable.get_state(config).values
    edited: RunnableConfig = durable.update_state(config, {"total": 1}, as_node="node")
    named: BoundGraph = durable.with_config(config)
    del outputs, values, edited, named
    durable.get_sate(config)  # type: ignore[attr-defined]
    runtime.bind(build())  # type: ignore[call-arg]
    return durable.invoke(Command(resume="yes"), config)


async def owned_async(runtime: Runtime) -> Any:
    durable = runtime.bind(build(), name="support")
    async for chunk in durable.astream({"total": 0}, {"configurable": {"thread_id": "t1"}}):
        del chunk
    async for position, output in durable.abatch_as_completed([{"total": 0}], {"configurable": {"thread_id": "t1"}}):
        del position, output
    async for event in durable.astream_events({"total": 0}, {"configurable": {"thread_id": "t1"}}, version="v2"):
        del event
    return await durable.ainvoke(None, {"configurable": {"thread_id": "t1"}})


def runs(url: str) -> list[str]:
    with Runtime.open(url, space="default", schema=None, serde=None, auto_setup=True, lease_ttl=30.0) as runtime:
        run: Run = runtime.runs.start("support", {"total": 0}, thread_id="t1", idempotency_key="order-7")
        status: str = run.record().status
        shown: str = runtime.runs.get(run.run_id).shown
        stopped: str = run.cancel()
        result: Any = run.result(timeout=1.0)
        answered: str = runtime.runs.answer(run.run_id, Command(resume="yes"))
        settled: str = runtime.runs.resolve("operation", happened=True, result=result)
        runtime.runs.start("support", {}, thread_id="t1", on_busy="rollback", checkpoint_id="c", priority=1, scope="s")
        questions: list[Question] = runtime.runs.questions(run.run_id)
        resumed: str = run.resume({questions[0].interrupt_id: "yes"}, by="ann")
        again: Run = runtime.runs.retry(run.run_id, from_start=True)
        fork: Run = runtime.runs.fork(again.run_id, checkpoint_id="c", thread_id="t2", input=None)
        runtime.runs.start("support", {}, thread=1)  # type: ignore[call-arg]
        with runtime.lease(thread_id="t1") as lease, runtime.checkpointer.session(lease) as session:
            epoch: int = lease.epoch
            session.get_tuple({"configurable": {"thread_id": lease.thread_id}})
        return [
            status,
            shown,
            stopped,
            answered,
            settled,
            resumed,
            fork.thread_id,
            str(epoch),
            *(run.run_id for run in runtime.runs.list(limit=5)),
        ]


async def runs_async(url: str) -> str:
    async with Runtime.open(url) as runtime:
        run: Run = await runtime.runs.astart("support", {"total": 0})
        async with await runtime.alease(thread_id="t1") as lease:
            await lease.arelease()
        await run.aresult(timeout=0)
        return (await run.arecord()).status


def seen_from_outside(handler: logging.Handler) -> None:
    handler.addFilter(RunFilter())
    handler.setFormatter(JsonFormatter())
    configure(tracer_provider=TracerProvider(), command_spans=True)
    configure(enabled=False)
    configure(tracer_provider="no provider")  # type: ignore[arg-type]
