"""The claim loop: look for claimable runs, claim, execute, report."""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from runtime_persist.engine import run
from runtime_persist.engine.notifications import CLAIMABLE
from runtime_persist.errors import DatabaseUnavailable, DomainsOpen, InvalidInput, RuntimeFailed, RuntimePersistError
from runtime_persist.model import limits
from runtime_persist.model.capacity import task_id
from runtime_persist.model.evidence import IN_PROCESS
from runtime_persist.model.text import said_by
from runtime_persist.telemetry import logger
from runtime_persist.worker.capacity import Instance
from runtime_persist.worker.claiming import Claimer
from runtime_persist.worker.execute import Task
from runtime_persist.worker.observing import Observer
from runtime_persist.worker.registry import serve
from runtime_persist.worker.runtimes import AttemptRuntime, Runtimes
from runtime_persist.worker.sweep import sweep

if TYPE_CHECKING:
    from runtime_persist.engine import OwnedRun
    from runtime_persist.runtime import Runtime
    from runtime_persist.worker.registry import Servable

_log = logger("runtime_persist.worker")
_POLL_SECONDS = 0.25

Report = Callable[[str, Mapping[str, Any]], None]


class Worker:
    """Claims and executes runs of some graphs until it is stopped.

    The worker looks at intervals whose turn it is; the claim itself decides, under its locks. It claims only runs of
    the versions that its graphs have or accept: others stay as they are, uncounted. Before it claims it reports its
    capacity (docs/capacity.md). Besides, it stops runs past their deadline and states as lost what others left behind,
    whatever graph it is of.
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
        runtimes: Sequence[AttemptRuntime] = (),
        default_runtime: str = IN_PROCESS,
    ) -> None:
        """Serve ``graphs`` with up to ``slots`` runs at once.

        Args:
            runtime: the opened database.
            graphs: name -> compiled graph, function that makes one, or RegisteredGraph.
            slots: runs executed at the same time.
            poll_seconds: longest pause between two looks when nothing could be claimed. It is woken when a run is
                queued or ends, where that can be heard of (docs/events.md).
            sweep_seconds: pause between two looks for runs that are past their deadline or lost.
            stop_grace_seconds: how long a run past its deadline may go on to its next step before it is cancelled.
            drain_seconds: how long :meth:`stop` waits for runs to reach their next step (None: as long as it takes).
            report: called with what happens (``claimed``, ``finished``, ``failed`` …) and its facts;
                an error that it raises is logged.
            runtimes: what executes attempts, beside this process itself; whoever made them closes them.
            default_runtime: name of the runtime of graphs that name none.

        Raises:
            InvalidInput: a graph that cannot be served, or not by its runtime; no slot.

        """
        if slots < 1:
            msg = f"a worker needs at least one slot, got {slots}"
            raise InvalidInput(msg, slots=slots)
        self._runtime = runtime
        self._graphs = {name: serve(name, given) for name, given in graphs.items()}
        self._runtimes = Runtimes(runtimes, default_runtime)
        for name, served in self._graphs.items():
            self._runtimes.check(runtime, name, served)
        self._slots = slots
        self._poll_seconds = poll_seconds
        self._sweep_seconds = sweep_seconds
        self._stop_grace_seconds = stop_grace_seconds
        self._drain_seconds = drain_seconds
        self._report = report or _logged
        self._stop = threading.Event()
        self._abandon = threading.Event()
        self._changed = threading.Condition()
        self._news = False
        self._tasks: dict[Task, threading.Thread] = {}
        self._swept_at = -math.inf
        self._instance = Instance(runtime.engine, slots, {name: graph.versions for name, graph in self._graphs.items()})
        runs_itself = [name for name, served in self._graphs.items() if self._runtimes.is_worker(served)]
        self._claimer = Claimer(runtime, self._graphs, self._instance, runs_itself)
        self._observer = Observer(runtime.engine)

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
            run(self._runtime.register(name, graph.version, graph.retry, graph.max_concurrency, graph.workspace))
        self._instance.report_again()  # it left when it worked before
        engine = self._runtime.engine
        engine.wishes.listen()  # before a run begins: what its readers want decides how its graph is run
        with engine.notifications.subscribe(CLAIMABLE, self._wake):
            self._work(until_idle=until_idle)
        return self._drained()

    def _work(self, *, until_idle: bool) -> None:
        while not self._stop.is_set():
            self._news = False
            claimed = self._look(patient=not until_idle)
            with self._changed:
                if until_idle and not claimed and not self._tasks and not self._news:
                    return
                if not claimed and not self._news:
                    self._changed.wait(self._poll_seconds)

    def _wake(self, _message: bytes | None) -> None:
        with self._changed:
            self._news = True
            self._changed.notify_all()

    def _drained(self) -> bool:
        """Wait until the runs in execution have ended, or for as long as is allowed; then let go of the rest."""
        self._leave()
        until = math.inf if self._drain_seconds is None else time.monotonic() + self._drain_seconds
        with self._changed:
            while self._tasks and not self._abandon.is_set() and time.monotonic() < until:
                self._changed.wait(self._poll_seconds)  # not longer: a signal handler must not notify
            left = list(self._tasks)
        self._leave()
        for task in left:
            task.abandon()
            self._tell("abandoned", {"run_id": task.owned.lease.run_id, "epoch": task.owned.lease.epoch})
        return not left

    def _leave(self) -> None:
        with self._changed:
            tasks = self._task_ids()
        with contextlib.suppress(RuntimePersistError):  # a report that is not renewed runs out by itself
            self._instance.leave(tasks)

    def _look(self, *, patient: bool) -> bool:
        """Claim what there are slots for, then sweep; return whether anything was claimed.

        A database that is busy or away may come back; when we are patient, also one that cannot be written to now: it
        could when the worker began, so a disk is full, or a server became a standby.
        """
        try:
            claimed = self._claim_free_slots()
            if time.monotonic() - self._swept_at >= self._sweep_seconds:
                sweep(self._runtime.engine)
                self._swept_at = time.monotonic()
            self._observer.look()
        except RuntimePersistError as error:
            if error.kind not in {"retry", "unknown"} and not (patient and isinstance(error, DatabaseUnavailable)):
                raise
            self._tell("waiting", {"code": error.code, "error": error.message})
            return False
        return claimed

    def _claim_free_slots(self) -> bool:
        """Claim as many runs as there are free slots; return whether there may be more to claim."""
        claimed = 0
        while not self._stop.is_set():
            with self._changed:
                begun, tasks = self._task_ids(limits.INSTANCE_CHANGES_SECONDS), len(self._tasks)
            self._instance.keep_reported(begun)
            if tasks >= self._slots:
                break
            found = self._claimer.claim()
            if found is None:
                break
            self._begin(*found)
            claimed += 1
        return claimed > 0 or self._claimer.outrun

    def _task_ids(self, seconds: float = 0.0) -> list[str]:
        """Return the tasks that have gone on for so long."""
        until = time.monotonic() - seconds
        leases = [task.owned.lease for task in self._tasks if task.began_at <= until]
        return [task_id(lease.run_id, lease.epoch) for lease in leases]

    def _tell(self, what: str, facts: Mapping[str, Any]) -> None:
        """Report what happened. Nobody who listens decides about runs: an error of his is logged, and work goes on."""
        try:
            self._report(what, facts)
        except Exception:  # noqa: BLE001 (the listener's own code)
            _log.exception("what is called with reports raised an error")

    def _begin(self, owned: OwnedRun, taken: Mapping[str, Any]) -> None:
        self._tell("claimed", taken)
        task = Task(self._runtime, owned, taken, self._graphs, self._stop_grace_seconds, self._runtimes)
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
        try:
            thread.start()
        except RuntimeError:  # the system gives no more threads: the claim is given back as when the worker ends
            _log.exception("no thread could be started for run %s", owned.lease.run_id)
            self._claimer.pause(owned.graph)
            task.drain()
            self._execute(task)

    def _execute(self, task: Task) -> None:
        lease = task.owned.lease
        try:
            error = task.run()
            if isinstance(error, RuntimeFailed):
                self._claimer.pause(task.owned.graph)
            elif task.dispatched:
                self._claimer.go_on(task.owned.graph)
            facts: dict[str, Any] = {
                "run_id": lease.run_id,
                "epoch": lease.epoch,
                "attempt_id": task.owned.attempt_id,
            }
            if error is None:
                self._tell("finished", facts)
            elif isinstance(error, DomainsOpen):
                self._claimer.back_off(lease.run_id)
                self._tell("blocked", {**facts, "code": error.code, "error": error.message})
            else:
                code = error.code if isinstance(error, RuntimePersistError) else type(error).__name__
                self._tell("stopped", {**facts, "code": code, "error": said_by(error)})
        finally:
            with self._changed:
                del self._tasks[task]
                self._news = True  # a slot is free: whoever is about to wait for that looks again instead
                self._changed.notify_all()


def _logged(what: str, facts: Mapping[str, Any]) -> None:
    """Log what happens; of an error its code only: its text may say anything."""
    _log.info("%s", what, extra={name: value for name, value in facts.items() if name != "error"})
