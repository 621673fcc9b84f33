"""The claim loop: look for claimable runs, claim, execute, report."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from runtime_persist.engine import ownership, run
from runtime_persist.errors import InvalidInput, NothingToClaim, RuntimePersistError, ThreadOwned
from runtime_persist.queries import runs as run_queries
from runtime_persist.worker.execute import Task

if TYPE_CHECKING:
    from runtime_persist.plan import Row
    from runtime_persist.runtime import Runtime
    from runtime_persist.worker.registry import Graph

_log = logging.getLogger("runtime_persist.worker")
_POLL_SECONDS = 0.25
_CANDIDATES = 16

Report = Callable[[str, Mapping[str, Any]], None]


class Worker:
    """Claims and executes runs of some graphs until it is stopped.

    The worker looks for claimable runs at intervals; the claim itself decides, under the locks of thread and run.
    """

    def __init__(
        self,
        runtime: Runtime,
        graphs: Mapping[str, Graph],
        *,
        slots: int = 1,
        poll_seconds: float = _POLL_SECONDS,
        report: Report | None = None,
    ) -> None:
        """Serve ``graphs`` with up to ``slots`` runs at once.

        Args:
            runtime: the opened database.
            graphs: name -> compiled graph.
            slots: runs executed at the same time.
            poll_seconds: pause between two looks when nothing could be claimed.
            report: called with what happens (``claimed``, ``finished``, ``failed`` …) and its facts.

        """
        if slots < 1:
            msg = f"a worker needs at least one slot, got {slots}"
            raise InvalidInput(msg, slots=slots)
        self._runtime = runtime
        self._graphs = dict(graphs)
        self._slots = slots
        self._poll_seconds = poll_seconds
        self._report = report or _logged
        self._stop = threading.Event()
        self._changed = threading.Condition()
        self._tasks: dict[Task, threading.Thread] = {}

    def stop(self) -> None:
        """Claim nothing more; runs in execution stop at their next step. Safe in a signal handler."""
        self._stop.set()
        for task in list(self._tasks):
            task.drain()

    def run(self, *, until_idle: bool = False) -> None:
        """Work until :meth:`stop`; with ``until_idle`` also end when nothing is claimable and nothing runs."""
        for name in self._graphs:
            run(self._runtime.register(name))
        while not self._stop.is_set():
            claimed = self._claim_free_slots()
            with self._changed:
                busy = bool(self._tasks)
                if until_idle and not claimed and not busy:
                    break
                if not claimed:
                    self._changed.wait(self._poll_seconds)
        for thread in list(self._tasks.values()):
            thread.join()

    def _claim_free_slots(self) -> bool:
        """Claim as many runs as there are free slots; return whether any was claimed."""
        with self._changed:
            free = self._slots - len(self._tasks)
        if free <= 0:
            return False
        engine = self._runtime.engine
        names = sorted(self._graphs)
        candidates = engine.coordinator.read(
            "read_claimable",
            lambda: run_queries.claimable(engine.space, names, _CANDIDATES),
        ).result()
        claimed = 0
        for candidate in candidates:
            if claimed >= free or self._stop.is_set():
                break
            claimed += self._claim(candidate)
        return claimed > 0

    def _claim(self, candidate: Row) -> bool:
        serde = self._runtime.checkpointer.serde
        try:
            owned, taken = run(ownership.claim(self._runtime.engine, serde, candidate))
        except (NothingToClaim, ThreadOwned):
            return False  # somebody else was quicker
        self._report("claimed", {**taken, "graph": candidate["graph"], "thread_id": candidate["thread_id"]})
        task = Task(self._runtime, owned, taken, self._graphs)
        thread = threading.Thread(
            target=self._execute,
            args=(task,),
            name=f"run-{owned.lease.run_id}",
            daemon=True,
        )
        with self._changed:
            self._tasks[task] = thread
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
