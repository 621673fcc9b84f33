"""A graph bound to runs (level L1): each call is a run with a lease, heartbeats, a journal and receipts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from langgraph.runtime import RunControl
from langgraph.types import Command

from runtime_persist.adapters.workflow import reading, upkeep
from runtime_persist.adapters.workflow.execution import Execution, bound_copy, execution, outer_run, reentry
from runtime_persist.engine import Flow, arun, ownership, run
from runtime_persist.errors import InvalidInput, NothingToClaim

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Sequence

    from langchain_core.runnables import RunnableConfig
    from langgraph.pregel import Pregel

    from runtime_persist.adapters.workflow.saver import WorkflowCheckpointAdapter
    from runtime_persist.engine import OwnedRun

_READS: Final = frozenset(
    {
        "get_state", "aget_state", "get_state_history", "aget_state_history", "update_state", "aupdate_state",
        "bulk_update_state", "abulk_update_state", "get_graph", "aget_graph", "get_subgraphs", "aget_subgraphs",
        "get_input_schema", "get_output_schema", "get_input_jsonschema", "get_output_jsonschema", "input_schema",
        "output_schema", "nodes", "channels", "name", "config", "config_schema", "stream_mode", "store", "builder",
    },
)  # fmt: skip
"""What is handed on to the graph under the optimistic saver: reading, and a person's edits (thread-guarded)."""


class BoundGraph:
    """A compiled graph whose calls are runs. The graph it was made from is untouched.

    ``invoke(input)`` starts a run; ``invoke(None)`` and ``invoke(Command(resume=…))`` continue the thread's open
    run (one that waits, or whose lease ran out); with no open run they start one that names the last as
    ``retry_of_run_id``. The config must name a ``thread_id``.

    Called inside a node of another bound graph it is a run of its own, with a lease of its own for its thread; losing
    that lease fails this call only.
    """

    def __init__(
        self,
        graph: Pregel[Any, Any, Any, Any],
        saver: WorkflowCheckpointAdapter,
        name: str,
    ) -> None:
        """Use ``runtime.bind(graph, name=…)``."""
        self._graph = graph
        self._saver = saver.for_graph(graph)
        self._plain = bound_copy(graph, self._saver)
        self.run_name = name

    def invoke(
        self,
        input: Any,  # noqa: A002 (LangGraph's name)
        config: RunnableConfig | None = None,
        *,
        control: RunControl | None = None,
        **options: Any,
    ) -> Any:
        """Run the graph as a run of its own and return its output; ``options`` are LangGraph's.

        Raises:
            ThreadOwned: another run has the thread.
            LeaseLost, LeaseExpired: the run was lost meanwhile; ``invoke(None)`` continues it.
            OperationUnknown: a journalled call has an unknown outcome; the run waits for a person.
            RunStopping: the run was cancelled.

        """
        call = run(self._open(input, config, control))
        try:
            output = call.graph.invoke(call.input, call.config, control=call.control, **options)
            state = call.graph.get_state(call.state_config)
            run(call.concluded(output, state))
        except BaseException as error:  # noqa: BLE001 (settled, then raised)
            raise_settled(error, run(call.broken(error)))
        return output

    async def ainvoke(
        self,
        input: Any,  # noqa: A002 (LangGraph's name)
        config: RunnableConfig | None = None,
        *,
        control: RunControl | None = None,
        **options: Any,
    ) -> Any:
        """Do :meth:`invoke` from an event loop; cancelling it leaves the run cancelled."""
        call = await arun(self._open(input, config, control))
        try:
            output = await call.graph.ainvoke(call.input, call.config, control=call.control, **options)
            state = await call.graph.aget_state(call.state_config)
            await arun(call.concluded(output, state))
        except BaseException as error:  # noqa: BLE001 (settled, then raised)
            raise_settled(error, await arun(call.broken(error)))
        return output

    def stream(
        self,
        input: Any,  # noqa: A002 (LangGraph's name)
        config: RunnableConfig | None = None,
        *,
        control: RunControl | None = None,
        **options: Any,
    ) -> Iterator[Any]:
        """Run the graph as a run of its own and yield its stream; closing it early leaves the run cancelled."""
        call = run(self._open(input, config, control))
        try:
            yield from call.graph.stream(call.input, call.config, control=call.control, **options)
            state = call.graph.get_state(call.state_config)
            run(call.concluded(state.values, state))
        except BaseException as error:  # noqa: BLE001 (settled, then raised)
            raise_settled(error, run(call.broken(error)))

    async def astream(
        self,
        input: Any,  # noqa: A002 (LangGraph's name)
        config: RunnableConfig | None = None,
        *,
        control: RunControl | None = None,
        **options: Any,
    ) -> AsyncIterator[Any]:
        """Do :meth:`stream` from an event loop."""
        call = await arun(self._open(input, config, control))
        chunks = call.graph.astream(call.input, call.config, control=call.control, **options)
        try:
            try:
                async for chunk in chunks:
                    yield chunk
            finally:
                await chunks.aclose()  # type: ignore[attr-defined]  # an async generator: its loop ends here
            state = await call.graph.aget_state(call.state_config)
            await arun(call.concluded(state.values, state))
        except BaseException as error:  # noqa: BLE001 (settled, then raised)
            raise_settled(error, await arun(call.broken(error)))

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Prune threads of this graph, one transaction each; it may be repeated.

        Args:
            thread_ids: the threads.
            strategy: ``keep_latest`` keeps the newest checkpoint of each namespace. Values of DeltaChannels are
                stored in it, so their history goes too (it stays, hidden, for a subgraph that LangGraph cannot find
                in the graph, such as one that a tool calls); state, pending writes and interrupts are unchanged.
                ``delete`` deletes the threads.

        Raises:
            TypeError: a text instead of a list of thread ids.
            ValueError: another strategy.
            ThreadOwned: a live run owns one of the threads; earlier threads are done.
            StaleWriter: somebody kept storing checkpoints meanwhile.

        """
        run(upkeep.prune(self._saver.context, thread_ids, strategy, self._graph))

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Do :meth:`prune` from an event loop."""
        await arun(upkeep.prune(self._saver.context, thread_ids, strategy, self._graph))

    def __getattr__(self, name: str) -> Any:
        """Hand reading and a person's edits on to the graph; refuse what would run it without a lease."""
        if name in _READS:
            return getattr(self._plain, name)
        msg = f"a bound graph has no {name!r}; use invoke, ainvoke, stream, astream, or the graph itself"
        raise AttributeError(msg)

    def _open(self, given: Any, config: RunnableConfig | None, control: RunControl | None) -> Flow[Execution]:
        """Start a run, or continue the thread's open one."""
        own = config or {}
        place = reading.place_of(own)
        if place.ns:
            msg = f"a run is of a whole thread; checkpoint_ns={place.ns!r} cannot be invoked"
            raise InvalidInput(msg)
        outer = yield from outer_run()
        control = control or RunControl()
        retry_of: str | None = None
        if place.checkpoint_id is None and (given is None or isinstance(given, Command)):
            try:
                return (yield from self._continue(given, own, place.thread_id, control, outer))
            except NothingToClaim as nothing:
                retry_of = nothing.details["last_run_id"]
        engine, serde = self._saver.engine, self._saver.serde
        asked = ownership.request(
            engine,
            serde,
            self.run_name,
            given,
            thread_id=place.thread_id,
            start_checkpoint_id=place.checkpoint_id,
            retry_of_run_id=retry_of,
        )
        owned = yield from ownership.start(engine, serde, asked, place.thread_id)
        yield from ownership.started_within(engine, owned, outer)
        return execution(self._saver, owned, self._graph, given, own, control, place.checkpoint_id)

    def _continue(
        self,
        given: Any,
        config: RunnableConfig,
        thread_id: str,
        control: RunControl,
        outer: OwnedRun | None,
    ) -> Flow[Execution]:
        saver = self._saver
        answer = None
        if given is not None:
            head = yield from reading.get_tuple(saver.context, {"configurable": {"thread_id": thread_id}})
            answer = {"checkpoint_id": head.checkpoint["id"] if head else None, "command": given}
        engine = saver.engine
        owned = yield from ownership.proceed(engine, saver.serde, thread_id, self.run_name, answer)
        yield from ownership.started_within(engine, owned, outer)
        return (yield from reentry(saver, owned, self._graph, config, control))


def raise_settled(error: BaseException, settled: BaseException) -> None:
    """Raise what the caller gets: the error itself, or what stands above it, with the error as its context."""
    if settled is error:
        raise error
    raise settled from (settled.__cause__ or error)
