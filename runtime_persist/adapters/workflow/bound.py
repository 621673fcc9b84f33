"""A graph bound to runs (level L1): each call is a run with a lease, heartbeats, a journal and receipts."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from langchain_core.runnables.config import get_config_list
from langgraph.runtime import RunControl
from langgraph.types import Command

from runtime_persist.adapters.workflow import answers, reading, upkeep
from runtime_persist.adapters.workflow.bound_state import GraphState
from runtime_persist.adapters.workflow.execution import Execution, execution, outer_run, reentry
from runtime_persist.adapters.workflow.starting import answering, start_of
from runtime_persist.adapters.workflow.turns import Outcome, aoutcomes, in_order, outcomes
from runtime_persist.engine import Flow, arun, ownership, requests, run
from runtime_persist.errors import InvalidInput, NothingToClaim
from runtime_persist.model.budgets import Budget

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence

    from langchain_core.runnables import RunnableConfig
    from langgraph.pregel import Pregel

    from runtime_persist.adapters.workflow.saver import WorkflowCheckpointAdapter
    from runtime_persist.engine import OwnedRun


class BoundGraph(GraphState):
    """A compiled graph whose calls are runs. The graph it was made from is untouched.

    ``invoke(input)`` starts a run; ``invoke(None)`` and ``invoke(Command(resume=…))`` continue the thread's open
    run (one that waits, or whose lease ran out); with no open run they start one that names the last as
    ``retry_of_run_id``. The config must name a ``thread_id``. A ``checkpoint_id`` in it starts a run at that
    checkpoint, also at one inside a subgraph; an answer (``Command(resume=…)``) at the latest checkpoint continues the
    open run.

    It is a LangChain ``Runnable``: each call that ``batch``, ``astream_events``, ``with_retry``, a chain or a tool
    makes of it is a run.

    Called inside a node of another bound graph it is a run of its own, with a lease of its own for its thread; losing
    that lease fails this call only.
    """

    def __init__(
        self,
        graph: Pregel[Any, Any, Any, Any],
        saver: WorkflowCheckpointAdapter,
        name: str,
        version: str | None = None,
        budget: Budget | None = None,
    ) -> None:
        """Use ``runtime.bind(graph, name=…)``."""
        super().__init__(graph, saver.for_graph(graph))
        self.run_name = name
        self._version = version
        self._budget = budget

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
            BudgetExhausted: the run's budget is spent; the run waits for a person.
            OperationUnknown: a journalled call has an unknown outcome; the run waits for a person.
            RunStopping: the run was cancelled.

        """
        call = run(self._open(input, config, control))
        try:
            with call.scope:
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
            with call.scope:
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
            yield from call.scope.each(call.graph.stream(call.input, call.config, control=call.control, **options))
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
        chunks = call.scope.aeach(call.graph.astream(call.input, call.config, control=call.control, **options))
        try:
            try:
                async for chunk in chunks:
                    yield chunk
            finally:
                await chunks.aclose()  # its loop ends here
            state = await call.graph.aget_state(call.state_config)
            await arun(call.concluded(state.values, state))
        except BaseException as error:  # noqa: BLE001 (settled, then raised)
            raise_settled(error, await arun(call.broken(error)))

    # --- many inputs ------------------------------------------------------------------------------------------------

    def batch(
        self,
        inputs: Sequence[Any],
        config: RunnableConfig | Sequence[RunnableConfig] | None = None,
        *,
        return_exceptions: bool = False,
        **options: Any,
    ) -> list[Any]:
        """Invoke each input as a run of its own and return the outputs in the order of the inputs.

        Threads go on in parallel. Inputs of one thread are taken one after the other, in their order, as if each were
        invoked when the one before it ended, however that ended.

        Args:
            inputs: the inputs.
            config: one for each input, or one for all (then they are turns of one thread); the first one's
                ``max_concurrency`` is how many runs go on at once.
            return_exceptions: return the exceptions in their places. Otherwise the first one, in the order of the
                inputs, is raised, but not before every input was run.
            options: LangGraph's, as for :meth:`invoke`.

        Raises:
            ValueError: as many configs as inputs are needed.
            InvalidThreadId: one of the configs names no usable thread; nothing was run.

        """
        found = list(self._outcomes(inputs, config, options))
        return in_order(found, return_exceptions=return_exceptions)

    async def abatch(
        self,
        inputs: Sequence[Any],
        config: RunnableConfig | Sequence[RunnableConfig] | None = None,
        *,
        return_exceptions: bool = False,
        **options: Any,
    ) -> list[Any]:
        """Do :meth:`batch` from an event loop; cancelling it leaves the runs cancelled that were not finished."""
        found = [one async for one in self._aoutcomes(inputs, config, options)]
        return in_order(found, return_exceptions=return_exceptions)

    def batch_as_completed(
        self,
        inputs: Sequence[Any],
        config: RunnableConfig | Sequence[RunnableConfig] | None = None,
        *,
        return_exceptions: bool = False,
        **options: Any,
    ) -> Iterator[Outcome]:
        """Do :meth:`batch`, and yield ``(position, output)`` as the runs end."""
        for position, outcome in self._outcomes(inputs, config, options):
            if isinstance(outcome, Exception) and not return_exceptions:
                raise outcome
            yield position, outcome

    async def abatch_as_completed(
        self,
        inputs: Sequence[Any],
        config: RunnableConfig | Sequence[RunnableConfig] | None = None,
        *,
        return_exceptions: bool = False,
        **options: Any,
    ) -> AsyncIterator[Outcome]:
        """Do :meth:`batch_as_completed` from an event loop."""
        async with contextlib.aclosing(self._aoutcomes(inputs, config, options)) as found:
            async for position, outcome in found:
                if isinstance(outcome, Exception) and not return_exceptions:
                    raise outcome
                yield position, outcome

    def _outcomes(self, inputs: Sequence[Any], config: Any, options: dict[str, Any]) -> Iterator[Outcome]:
        if not inputs:
            return iter(())
        configs = get_config_list(config, len(inputs))
        threads = [start_of(self._graph, one)[0] for one in configs]
        return outcomes(lambda given, own: self.invoke(given, own, **options), inputs, configs, threads)

    async def _aoutcomes(
        self, inputs: Sequence[Any], config: Any, options: dict[str, Any]
    ) -> AsyncGenerator[Outcome, None]:
        if not inputs:
            return
        configs = get_config_list(config, len(inputs))
        threads = [start_of(self._graph, one)[0] for one in configs]

        async def ainvoke(given: Any, own: RunnableConfig) -> Any:
            return await self.ainvoke(given, own, **options)

        async with contextlib.aclosing(aoutcomes(ainvoke, inputs, configs, threads)) as found:
            async for outcome in found:
                yield outcome

    # --- upkeep ------------------------------------------------------------------------------------------------------

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

    def _open(self, given: Any, config: RunnableConfig | None, control: RunControl | None) -> Flow[Execution]:
        """Start a run, or continue the thread's open one."""
        own = config or {}
        thread_id, start = start_of(self._graph, own)
        outer = yield from outer_run()
        control = control or RunControl()
        retry_of: str | None = None
        answered = False
        if start is not None:
            start = yield from answering(self._saver.context, thread_id, given, start)
        if start is None and (given is None or isinstance(given, Command)):
            try:
                return (yield from self._continue(given, own, thread_id, control, outer))
            except NothingToClaim as nothing:
                retry_of = nothing.details["last_run_id"]
            if retry_of is not None:  # it goes on where that run stopped: its answers answer nothing that comes next
                taken = yield from answers.resumed(self._saver.engine, thread_id, retry_of, is_retry=True)
                answered = answers.hides(taken)
        engine, serde = self._saver.engine, self._saver.serde
        asked = requests.request(
            engine,
            serde,
            self.run_name,
            given,
            thread_id=thread_id,
            start_checkpoint_id=None if start is None else start.encoded(),
            retry_of_run_id=retry_of,
            graph_version=self._version,
            budget=budget_of(own, self._budget),
        )
        owned = yield from ownership.start(engine, serde, asked, thread_id)
        yield from ownership.started_within(engine, owned, outer)
        owned.answered = answered
        return execution(self._saver, owned, self._graph, given, own, control, start)

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


def budget_of(config: RunnableConfig, otherwise: Budget | None) -> Budget | None:
    """Return the budget that a config names for the run that it starts (raises InvalidInput)."""
    found = (config.get("configurable") or {}).get("budget", otherwise)
    if found is not None and not isinstance(found, Budget):
        msg = f"configurable.budget is a runtime_persist.Budget, not {found!r}"
        raise InvalidInput(msg)
    return found


def raise_settled(error: BaseException, settled: BaseException) -> None:
    """Raise what the caller gets: the error itself, or what stands above it, with the error as its context."""
    if settled is error:
        raise error
    raise settled from (settled.__cause__ or error)
