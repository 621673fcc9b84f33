"""How a worker executes a claimed run: activate, start fence, graph, end. One event loop a run, on its own thread."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

from langgraph.runtime import RunControl

from runtime_persist.adapters.workflow.execution import Execution, reentry
from runtime_persist.engine import Flow, OwnedRun, arun, ownership
from runtime_persist.errors import Fenced, LeaseExpired, RuntimePersistError
from runtime_persist.worker.registry import Served, look_up

if TYPE_CHECKING:
    from collections.abc import Mapping

    from runtime_persist.runtime import Runtime

_CRASH_LOOP = "crash_loop"


class Task:
    """One claimed run in execution.

    Attributes:
        owned: the run.
        control: asks its graph to stop at its next step.

    """

    def __init__(
        self,
        runtime: Runtime,
        owned: OwnedRun,
        taken: Mapping[str, Any],
        graphs: Mapping[str, Served],
        stop_grace_seconds: float,
    ) -> None:
        """Execute ``owned``, which was claimed with the answer ``taken``."""
        self._runtime = runtime
        self._graphs = graphs
        self._taken = taken
        self._stop_grace_seconds = stop_grace_seconds
        self._loop: asyncio.AbstractEventLoop | None = None
        self._graph_runs: asyncio.Task[Any] | None = None
        self.owned = owned
        self.control = RunControl()

    def drain(self) -> None:
        """Ask the graph to stop at its next step; the run is queued again."""
        self.control.request_drain("shutdown")

    def abandon(self) -> None:
        """Let go of the run where it stands: nothing of it is written any more, and its lease runs out."""
        self._runtime.engine.heartbeats.remove(self.owned)
        run_id = self.owned.lease.run_id
        self.owned.fail(LeaseExpired(f"the worker of run {run_id} was told to end at once", run_id=run_id))

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
        self._loop = asyncio.get_running_loop()
        self._graph_runs = asyncio.current_task()
        self.owned.on_stop(self._stopped)
        try:
            output = await call.graph.ainvoke(call.input, call.config, control=call.control)
            self._graph_runs = None
            state = await call.graph.aget_state(call.state_config)
            await arun(call.concluded(output, state))
        except BaseException as error:  # noqa: BLE001 (settled, then raised)
            self._graph_runs = None
            settled = await arun(call.broken(error))
            raise settled from (settled.__cause__ if settled is error else error)

    def _stopped(self, reason: str) -> None:
        """Cancel the node code: at once when the lease is lost (nothing it does counts), after a while at a deadline.

        A graph that is asked to drain stops at its next step, but a node may wait for something that never comes.
        """
        loop = self._loop
        if loop is None:
            return
        with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile: there is nothing left to cancel
            if self.owned.error is not None:
                loop.call_soon_threadsafe(self._cancel)
            elif reason == "deadline":
                loop.call_soon_threadsafe(loop.call_later, self._stop_grace_seconds, self._cancel)

    def _cancel(self) -> None:
        if self._graph_runs is not None:
            self._graph_runs.cancel()

    def _enter(self) -> Flow[Execution]:
        """Return the execution; a run that cannot even be entered has failed."""
        try:
            graph = look_up(self._graphs, self.owned.graph).graph
            return (yield from reentry(self._runtime.checkpointer, self.owned, graph, {}, self.control))
        except Fenced as error:
            raise self.owned.fail(error) from error
        except RuntimePersistError as error:
            yield from ownership.fail_attempt(self._runtime.engine, self.owned, error)
            raise

    def _ended_without_running(self) -> Flow[bool]:
        """End a run that is being stopped, or that crashes its workers again and again, without running it.

        A worker that was told to end meanwhile gives its claim back.
        """
        engine, owned = self._runtime.engine, self.owned
        try:
            if self._taken["control"] != "open":
                yield from ownership.cancel(engine, owned, self._taken["stop_reason"] or "stop")
                return True
            if self._taken["crash_loop"]:
                text = "its workers crashed too often in a row without a new checkpoint or operation"
                yield from ownership.fail(engine, owned, _CRASH_LOOP, text)
                return True
            if self.control.drain_requested:
                yield from ownership.give_back(engine, owned)
                return True
        except RuntimePersistError as error:
            raise owned.fail(error) from error
        return False
