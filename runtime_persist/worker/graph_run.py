"""One attempt's graph, run to its end on an event loop of the calling thread: in a worker, or in an attempt's child."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

from runtime_persist.adapters.workflow.execution import Execution, reentry
from runtime_persist.engine import Flow, OwnedRun, arun, run, settling
from runtime_persist.engine.workspaces import CURRENT, close_workspace, open_workspace
from runtime_persist.errors import Fenced, RuntimePersistError
from runtime_persist.worker import streaming

if TYPE_CHECKING:
    from pathlib import Path

    from langgraph.runtime import RunControl

    from runtime_persist.engine.endings import Ends
    from runtime_persist.engine.workspaces import WorkspaceHold
    from runtime_persist.runtime import Runtime
    from runtime_persist.worker.registry import Graph


class GraphRun:
    """A graph as the attempt of a run whose lease is active."""

    def __init__(
        self,
        runtime: Runtime,
        owned: OwnedRun,
        graph: Graph,
        control: RunControl,
        stop_grace_seconds: float,
        ends: Ends = settling,
        workspace: Path | None = None,
    ) -> None:
        """Run ``graph``; ``control`` asks it to stop at its next step, ``ends`` is told how it ended.

        ``workspace``: the directory that it works in.
        """
        self._workspace = workspace
        self._held: WorkspaceHold | None = None
        self._ends = ends
        self._runtime = runtime
        self._owned = owned
        self._graph = graph
        self._control = control
        self._stop_grace_seconds = stop_grace_seconds
        self._loop: asyncio.AbstractEventLoop | None = None
        self._graph_runs: asyncio.Task[Any] | None = None
        self._call: Execution | None = None
        self._cancelled = self._loop_ended = False

    def run(self) -> None:
        """Run it to its end, which is settled; raise what went wrong with it."""
        try:
            asyncio.run(self._main())
        except BaseException as raised:
            with contextlib.suppress(RuntimePersistError):  # who takes the run over revokes it
                run(self._left_workspace())  # nodes on threads have returned: the loop's end has waited for them
            error = self._unsettled(raised)
            if self._call is None or error is None:
                raise
            # The loop's end has waited for the nodes on threads: what they wrote to is closed by now.
            settled = run(self._call.broken(error))
            raise settled from (settled.__cause__ if settled is error else error)

    def _unsettled(self, raised: BaseException) -> BaseException | None:
        """Return the error that is still to be settled: a node's directory was open, or it ended the loop itself."""
        if self._call is None:
            return None
        return raised if self._loop_ended else self._call.held_up

    async def _main(self) -> None:
        call = self._call = await arun(self._enter())
        self._loop = asyncio.get_running_loop()
        self._graph_runs = asyncio.current_task()
        self._owned.on_stop(self._stopped)
        try:
            await arun(self._entered_workspace())
            with call.scope:
                output = await streaming.invoke(call)
            self._graph_runs = None
            await arun(self._left_workspace())
            state = await call.graph.aget_state(call.state_config)
            await arun(call.concluded(output, state))
        except BaseException as error:
            self._graph_runs = None
            if isinstance(error, asyncio.CancelledError) and not self._cancelled:
                # A node that raises SystemExit or KeyboardInterrupt ends the loop with it, and that cancels this.
                self._loop_ended = True
                raise
            settled = await arun(call.broken(error))
            if call.held_up is not None:
                self._runtime.engine.heartbeats.add(self._owned)  # the lease is ours until they have returned
            raise settled from (settled.__cause__ if settled is error else error)

    def _entered_workspace(self) -> Flow[None]:
        if self._workspace is not None:
            self._held = yield from open_workspace(self._owned, self._workspace)
            CURRENT.set(self._held)

    def _left_workspace(self) -> Flow[None]:
        held, self._held = self._held, None
        if held is not None:
            yield from close_workspace(self._owned, held)

    def _stopped(self, reason: str) -> None:
        """Cancel the node code: at once when the lease is lost (nothing it does counts), after a while at a deadline.

        A graph that is asked to drain stops at its next step, but a node may wait for something that never comes.
        """
        loop = self._loop
        if loop is None:
            return
        with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile: there is nothing left to cancel
            if self._owned.error is not None:
                loop.call_soon_threadsafe(self._cancel)
            elif reason == "deadline":
                loop.call_soon_threadsafe(loop.call_later, self._stop_grace_seconds, self._cancel)

    def _cancel(self) -> None:
        if self._graph_runs is not None:
            self._cancelled = True
            self._graph_runs.cancel()

    def _enter(self) -> Flow[Execution]:
        """Return the execution; a run that cannot even be entered has failed."""
        try:
            call = yield from reentry(self._runtime.checkpointer, self._owned, self._graph, {}, self._control)
        except Fenced as error:
            raise self._owned.fail(error) from error
        except RuntimePersistError as error:
            if settling.is_of_the_database(error):
                raise self._owned.fail(error) from error
            yield from self._ends.fail_attempt(self._runtime.engine, self._owned, error)
            raise
        call.ends = self._ends
        call.unattended = True
        return call
