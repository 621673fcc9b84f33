"""How a worker executes a claimed run: activate, start fence, graph, end. One event loop a run, on its own thread."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from langgraph.runtime import RunControl

from runtime_persist.adapters.workflow.execution import Execution, reentry
from runtime_persist.engine import Flow, OwnedRun, arun, ownership
from runtime_persist.errors import RuntimePersistError
from runtime_persist.worker.registry import Graph, look_up

if TYPE_CHECKING:
    from collections.abc import Mapping

    from runtime_persist.runtime import Runtime

_CRASH_LOOP = "crash_loop"


class Task:
    """One claimed run in execution.

    Attributes:
        owned: the run.

    """

    def __init__(
        self,
        runtime: Runtime,
        owned: OwnedRun,
        taken: Mapping[str, Any],
        graphs: Mapping[str, Graph],
    ) -> None:
        """Execute ``owned``, which was claimed with the answer ``taken``."""
        self._runtime = runtime
        self._graphs = graphs
        self._taken = taken
        self.owned = owned
        self.control = RunControl()

    def drain(self) -> None:
        """Ask the graph to stop at its next step; the run is queued again."""
        self.control.request_drain("shutdown")

    def run(self) -> BaseException | None:
        """Execute the run to its end on this thread; return what went wrong, None when nothing did."""
        try:
            asyncio.run(self._main())
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 (settled; the worker reports it)
            return self.owned.error or error
        finally:
            self._runtime.engine.heartbeats.remove(self.owned)
        return None

    async def _main(self) -> None:
        if await arun(self._ended_without_running()):
            return
        await arun(ownership.activate(self.owned))
        call = await arun(self._enter())
        loop, main = asyncio.get_running_loop(), asyncio.current_task()

        def lost(_: str) -> None:
            if self.owned.error is not None and main is not None:
                loop.call_soon_threadsafe(main.cancel)

        # Losing the lease cancels the node code: nothing it does counts any more.
        self.owned.on_stop(lost)
        try:
            output = await call.graph.ainvoke(call.input, call.config, control=call.control)
            state = await call.graph.aget_state(call.state_config)
            await arun(call.concluded(output, state))
        except BaseException as error:  # noqa: BLE001 (settled, then raised)
            settled = await arun(call.broken(error))
            raise settled from (settled.__cause__ if settled is error else error)

    def _enter(self) -> Flow[Execution]:
        graph = look_up(self._graphs, self.owned.graph)
        return (yield from reentry(self._runtime.checkpointer, self.owned, graph, {}, self.control))

    def _ended_without_running(self) -> Flow[bool]:
        """End a run that is being stopped, or that crashes its workers again and again, without running it."""
        engine, owned = self._runtime.engine, self.owned
        try:
            if self._taken["control"] != "open":
                yield from ownership.cancel(engine, owned, self._taken["stop_reason"] or "stop")
                return True
            if self._taken["crash_loop"]:
                text = "its workers crashed too often in a row without a new checkpoint or operation"
                yield from ownership.fail(engine, owned, _CRASH_LOOP, text)
                return True
        except RuntimePersistError as error:
            raise owned.fail(error) from error
        return False
