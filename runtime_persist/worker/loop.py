"""The claim loop: look for claimable runs, claim, execute, report."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from runtime_persist.engine import ownership, run
from runtime_persist.errors import InvalidInput, NothingToClaim, RuntimePersistError, ThreadOwned
from runtime_persist.model import limits
from runtime_persist.queries import runs as run_queries
from runtime_persist.worker.execute import Task
from runtime_persist.worker.registry import serve
from runtime_persist.worker.sweep import sweep

if TYPE_CHECKING:
    from runtime_persist.plan import Row
    from runtime_persist.runtime import Runtime
    from runtime_persist.worker.registry import Servable

_log = logging.getLogger("runtime_persist.worker")
_POLL_SECONDS = 0.25
_CANDIDATES = 16

Report = Callable[[str, Mapping[str, Any]], None]


class Worker:
    """Claims and executes runs of some graphs until it is stopped.

    The worker looks for claimable runs at intervals; the claim itself decides, under the locks of thread and run. It
    claims only runs of the versions that its graphs have or accept: others stay as they are, uncounted. Besides, it
    stops runs past their deadline and states as lost what others left behind, whatever graph it is of.
    """

    def __init__(
        self,
        runtime: Runtime,
        graphs: Mapping[str, Servable],
        *,
        slots: int = 1,
        poll_seconds: float = _POLL_SECONDS,
        sweep_seconds: float = limits.SWEEP_SECONDS,
        stop_grace_seconds: float = limits.STOP_GRACE_SECONDS,
        drain_seconds: float | None = None,
        report: Report | None = None,
    ) -> None:
        """Serve ``graphs`` with up to ``slots`` runs at once.

        Args:
            runtime: the opened database.
            graphs: name -> compiled graph, function that makes one, or RegisteredGraph.
            slots: runs executed at the same time.
            poll_seconds: pause between two looks when nothing could be claimed.
            sweep_seconds: pause between two looks for runs that are past their deadline or lost.
            stop_grace_seconds: how long a run past its deadline may go on to its next step before it is cancelled.
            drain_seconds: how long :meth:`stop` waits for runs to reach their next step (None: as long as it takes).
            report: called with what happens (``claimed``, ``finished``, ``failed`` …) and its facts.

        Raises:
            InvalidInput: a graph that cannot be served, or no slot.

        """
        if slots < 1:
            msg = f"a worker needs at least one slot, got {slots}"
            raise InvalidInput(msg, slots=slots)
        self._runtime = runtime
        self._graphs = {name: serve(name, given) for name, given in graphs.items()}
        self._slots = slots
        self._poll_seconds = poll_seconds
        self._sweep_seconds = sweep_seconds
        self._stop_grace_seconds = stop_grace_seconds
        self._drain_seconds = drain_seconds
        self._report = report or _logged
        self._stop = threading.Event()
        self._abandon = threading.Event()
        self._changed = threading.Condition()
        self._tasks: dict[Task, threading.Thread] = {}
        self._swept_at = -math.inf

    def stop(self) -> None:
        """Claim nothing more; runs in execution stop at their next step and are queued again.

        A second call (or ``drain_seconds``) ends the wait for them: their leases are left to run out, and another
        worker takes them over. Safe in a signal handler.
        """
        if self._stop.is_set():
            self._abandon.set()
        self._stop.set()
        for task in list(self._tasks):
            task.drain()

    def run(self, *, until_idle: bool = False) -> bool:
        """Work until :meth:`stop`; with ``until_idle`` also end when nothing is claimable and nothing runs.

        Returns:
            Whether every run it had claimed was brought to an end; False when some were left to others.

        """
        for name, graph in self._graphs.items():
            run(self._runtime.register(name, graph.version, graph.retry))
        while not self._stop.is_set():
            claimed = self._look()
            with self._changed:
                busy = bool(self._tasks)
                if until_idle and not claimed and not busy:
                    break
                if not claimed:
                    self._changed.wait(self._poll_seconds)
        return self._drained()

    def _drained(self) -> bool:
        """Wait until the runs in execution have ended, or for as long as is allowed; then let go of the rest."""
        until = math.inf if self._drain_seconds is None else time.monotonic() + self._drain_seconds
        with self._changed:
            while self._tasks and not self._abandon.is_set() and time.monotonic() < until:
                self._changed.wait(self._poll_seconds)  # not longer: a signal handler must not notify
            left = list(self._tasks)
        for task in left:
            task.abandon()
            self._report("abandoned", {"run_id": task.owned.lease.run_id, "epoch": task.owned.lease.epoch})
        return not left

    def _look(self) -> bool:
        """Claim what there are slots for, then sweep; return whether anything was claimed.

        A database that is busy or away may come back.
        """
        try:
            claimed = self._claim_free_slots()
            if time.monotonic() - self._swept_at >= self._sweep_seconds:
                sweep(self._runtime.engine)
                self._swept_at = time.monotonic()
        except RuntimePersistError as error:
            if error.kind not in {"retry", "unknown"}:
                raise
            self._report("waiting", {"code": error.code, "error": error.message})
            return False
        return claimed

    def _claim_free_slots(self) -> bool:
        """Claim as many runs as there are free slots; return whether any was claimed."""
        with self._changed:
            free = self._slots - len(self._tasks)
        if free <= 0:
            return False
        engine = self._runtime.engine
        versions = {name: graph.versions for name, graph in self._graphs.items()}
        candidates = engine.coordinator.read(
            "read_claimable",
            lambda: run_queries.claimable(engine.space, versions, _CANDIDATES),
        ).result()
        claimed = 0
        for candidate in candidates:
            if claimed >= free or self._stop.is_set():
                break
            claimed += self._claim(candidate)
        return claimed > 0

    def _claim(self, candidate: Row) -> bool:
        serde = self._runtime.checkpointer.serde
        graph = self._graphs.get(candidate["graph"])  # None: a run that is only to be ended
        versions = graph.claims if graph else ()
        try:
            owned, taken = run(ownership.claim(self._runtime.engine, serde, candidate, versions))
        except (NothingToClaim, ThreadOwned):
            return False  # somebody else was quicker
        self._report("claimed", {**taken, "graph": candidate["graph"], "thread_id": candidate["thread_id"]})
        task = Task(self._runtime, owned, taken, self._graphs, self._stop_grace_seconds)
        thread = threading.Thread(
            target=self._execute,
            args=(task,),
            name=f"run-{owned.lease.run_id}",
            daemon=True,
        )
        with self._changed:
            self._tasks[task] = thread
        if self._stop.is_set():  # between the look at it and the entry: stop() has not seen this task
            task.drain()
        thread.start()
        return True

    def _execute(self, task: Task) -> None:
        lease = task.owned.lease
        try:
            error = task.run()
            facts: dict[str, Any] = {
                "run_id": lease.run_id,
                "epoch": lease.epoch,
                "attempt_id": task.owned.attempt_id,
            }
            if error is None:
                self._report("finished", facts)
            else:
                code = error.code if isinstance(error, RuntimePersistError) else type(error).__name__
                self._report("stopped", {**facts, "code": code, "error": str(error)})
        finally:
            with self._changed:
                del self._tasks[task]
                self._changed.notify_all()


def _logged(what: str, facts: Mapping[str, Any]) -> None:
    _log.info("%s %s", what, dict(facts))
