"""How a worker executes a claimed run: activate, start fence, graph, end. Each run has a thread of its own."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from langgraph.runtime import RunControl

from runtime_persist.engine import Flow, OwnedRun, dispatch, domains, holding, run, settling
from runtime_persist.errors import LeaseExpired, RunStopping, RuntimePersistError
from runtime_persist.recovery.rules import Act
from runtime_persist.recovery.runs import steps
from runtime_persist.worker import workspaces
from runtime_persist.worker.reconciling import reconciled
from runtime_persist.worker.registry import Served, look_up
from runtime_persist.worker.runtimes import Asked, Dispatch

if TYPE_CHECKING:
    from collections.abc import Mapping

    from runtime_persist.runtime import Runtime
    from runtime_persist.worker.runtimes import Runtimes

_CRASH_LOOP = "crash_loop"
_SHUTDOWN = "shutdown"


class Task:
    """One claimed run in execution.

    Attributes:
        owned: the run.
        began_at: monotonic seconds of its claim.
        control: asks its graph to stop at its next step.

    """

    def __init__(
        self,
        runtime: Runtime,
        owned: OwnedRun,
        taken: Mapping[str, Any],
        graphs: Mapping[str, Served],
        stop_grace_seconds: float,
        runtimes: Runtimes,
    ) -> None:
        """Execute ``owned``, which was claimed with the answer ``taken``, in the runtime that its graph names."""
        self._runtimes = runtimes
        self._attempt: Dispatch | None = None
        self._runtime = runtime
        self._graphs = graphs
        self._taken = taken
        self._stop_grace_seconds = stop_grace_seconds
        self.owned = owned
        self.began_at = time.monotonic()
        self.control = RunControl()

    @property
    def dispatched(self) -> bool:
        """Return whether an attempt was handed to the runtime."""
        return self._attempt is not None

    def drain(self) -> None:
        """Ask the graph to stop at its next step; the run is queued again."""
        self.control.request_drain(_SHUTDOWN)
        if self._attempt is not None:
            self._attempt.inbox.put(Asked("drain", _SHUTDOWN))

    def abandon(self) -> None:
        """Let go of the run where it stands: nothing of it is written any more, and its lease runs out."""
        self._runtime.engine.heartbeats.remove(self.owned)
        run_id = self.owned.lease.run_id
        self.owned.fail(LeaseExpired(f"the worker of run {run_id} was told to end at once", run_id=run_id))

    def run(self) -> BaseException | None:
        """Execute the run to its end on this thread; return what went wrong, None when nothing did."""
        try:
            if not run(self._ended_without_running()):
                self._execute()
        except BaseException as error:  # noqa: BLE001 (settled; the worker reports it)
            return self.owned.error or error
        finally:
            self._runtime.engine.heartbeats.remove(self.owned)
        return None

    def _execute(self) -> None:
        started = bool(self._taken.get("started"))
        if not started:
            run(dispatch.activate_lease(self.owned))
        served = run(self._served())
        run(self._prepared(served))
        attempt = Dispatch(
            self._runtime, self.owned, served, self.control, self._stop_grace_seconds, is_started=started
        )
        self._attempt = attempt
        if self.control.drain_requested:  # before there was an attempt to be told
            attempt.inbox.put(Asked("drain", _SHUTDOWN))
        try:
            self._runtimes.of(served).execute(attempt)
        finally:
            workspaces.put_away(self.owned, served)

    def _prepared(self, served: Served) -> Flow[None]:
        try:
            yield from workspaces.prepare(self._runtime.engine, self.owned, served)
        except RuntimePersistError as error:
            if not settling.is_of_the_database(error):
                yield from settling.fail(self._runtime.engine, self.owned, error.code, error.message)
            raise

    def _served(self) -> Flow[Served]:
        try:
            return look_up(self._graphs, self.owned.graph)
        except RuntimePersistError as error:
            yield from settling.fail(self._runtime.engine, self.owned, error.code, error.message)
            raise

    def _ended_by(self, act: Act) -> Flow[bool]:
        """Do a step that the recovery table puts before an attempt; return whether the run has ended with it."""
        engine, owned = self._runtime.engine, self.owned
        if act is Act.REVOKE:
            yield from domains.recover(engine, owned)
        elif act is Act.ASK_RUNTIME:
            return (yield from reconciled(engine, owned, self._runtimes))
        elif act is Act.END:
            yield from settling.cancel(engine, owned, self._taken["stop_reason"] or "stop")
        elif act is Act.GIVE_UP:
            text = "its workers crashed too often in a row without a new checkpoint or operation"
            yield from settling.fail(engine, owned, _CRASH_LOOP, text)
        return act in {Act.END, Act.GIVE_UP}

    def _ended_without_running(self) -> Flow[bool]:
        """End a run that is being stopped, or that crashes its workers again and again, without running it.

        A worker that was told to end meanwhile gives its claim back.
        """
        engine, owned = self._runtime.engine, self.owned
        try:
            if self._taken.get("started"):  # by its claim: nothing had to be done before
                yield from holding.hold(engine, owned)
                return (yield from self._stopped_meanwhile())
            for act in steps(self._taken):
                if (yield from self._ended_by(act)):
                    return True
            if self.control.drain_requested:
                yield from settling.give_back(engine, owned)
                return True
        except RuntimePersistError as error:
            raise owned.fail(error) from error
        return False

    def _stopped_meanwhile(self) -> Flow[bool]:
        """Settle an attempt that is started and not executed yet: the run is to stop, or the worker to end.

        In the second case the run is queued again.
        """
        engine, owned = self._runtime.engine, self.owned
        if owned.stop_reason is not None:
            yield from settling.cancel(engine, owned, owned.stop_reason)
            return True
        if not self.control.drain_requested:
            return False
        try:
            yield from settling.drain(engine, owned)
        except RunStopping:
            yield from settling.cancel(engine, owned, "stop")
        return True
