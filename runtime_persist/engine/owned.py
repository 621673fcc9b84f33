"""A run that this process owns: its lease, what went wrong first, and which checkpoints are durable."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from runtime_persist.commands.renew_lease import RenewLease
from runtime_persist.commands.request_stop import RequestStop
from runtime_persist.drivers.futures import Settled
from runtime_persist.errors import Fenced, LeaseExpired, RunStopping, RuntimePersistError
from runtime_persist.model import limits
from runtime_persist.model.ids import new_id
from runtime_persist.queries import checkpoints as checkpoint_queries
from runtime_persist.telemetry import active

if TYPE_CHECKING:
    from collections.abc import Callable

    from langgraph.checkpoint.serde.base import SerializerProtocol

    from runtime_persist.contentstore import ContentStore
    from runtime_persist.coordinator import CommitCoordinator, CommitReceipt
    from runtime_persist.engine.notifications import Notifications
    from runtime_persist.model.lease import ExecutionLease
    from runtime_persist.plan import Row

_DURABLE_REMEMBERED = 4_096


class Drainable(Protocol):
    """LangGraph's run control: asks the loop to stop at its next step."""

    def request_drain(self, reason: str = ...) -> None:
        """Ask for it."""


class Branch(NamedTuple):
    """What a run makes of a thread when it begins at a checkpoint that the thread has left behind.

    Attributes:
        checkpoint_id: the root's checkpoint it begins at.
        name: what the journal calls the operations of that checkpoint's tasks by, besides the tasks' own names.

    """

    checkpoint_id: str
    name: str


class OwnedRun:
    """Shared by the session, the journal, the heartbeats and whoever executes the run.

    Attributes:
        lease: the lease this process holds.
        attempt_id: the attempt running under it.
        graph: name of the graph.
        serde: serializer of inputs, results and journalled values.
        content: where large results go.
        max_value_bytes: larger serialized values are refused.
        renewed_at: monotonic seconds of the last successful renewal (its sending).
        stop_reason: why the run is being stopped, once a renewal brought it.
        answered: the answer stored at the head was taken up before: it must not answer the next question too.
        branch: the branch it makes, when it began at an old checkpoint.
        deadline_at: monotonic seconds at which the run is to stop, as far as it is known.
        within: the run whose node started this one.
        loop: the event loop whose tasks store its checkpoints, when it was called from one.
        traceparent: the trace context it was started in.
        budgeted: its calls take from a budget.
        limits_invocations: the invocations in it have a budget of their own.
        asks: a call of it waits for a person, so the attempt ends as soon as the others have.
        notifications: what happens to it is told here.
        row: the run's row as the claim that started it has saved it (None: it has to be read).
        ends_domains: execution domains that end with the attempt, when this very process is one.

    """

    def __init__(
        self,
        coordinator: CommitCoordinator,
        lease: ExecutionLease,
        *,
        graph: str,
        serde: SerializerProtocol,
        content: ContentStore,
        ttl: float,
        notifications: Notifications,
        max_value_bytes: int = limits.VALUE_BYTES_MAX,
    ) -> None:
        """Own ``lease``; the heartbeats are told by whoever took it."""
        self.coordinator = coordinator
        self.lease = lease
        self.attempt_id = lease.attempt_id
        self.graph = graph
        self.serde = serde
        self.content = content
        self.ttl = ttl
        self.max_value_bytes = max_value_bytes
        self.notifications = notifications
        self.budgeted = self.limits_invocations = False
        self.asks = False
        self.renewed_at = time.monotonic()
        self.stop_reason: str | None = None
        self.answered = False
        self.branch: Branch | None = None
        self.deadline_at: float | None = None
        self.within: OwnedRun | None = None
        self.loop: object | None = None
        self.traceparent: str | None = None
        self.row: Row | None = None
        self.ends_domains: tuple[str, ...] = ()
        self._error: RuntimePersistError | None = None
        self._lock = threading.Lock()
        self._controls: list[Drainable] = []
        self._on_stop: list[Callable[[str], None]] = []
        self._durable: OrderedDict[str, None] = OrderedDict()
        self._sent: set[str] = set()
        self._waiting: dict[str, list[Future[bool]]] = {}
        self.scratch: OrderedDict[Any, Any] = OrderedDict()
        """Room for the journal: counters of the tasks in flight."""

    # --- what went wrong first --------------------------------------------------------------------------------

    @property
    def error(self) -> RuntimePersistError | None:
        """Return the first refused or failed write, or the loss of the lease."""
        return self._error

    def check(self) -> None:
        """Raise what went wrong first, if anything did."""
        if self._error is not None:
            raise self._error

    def fail(self, error: RuntimePersistError) -> RuntimePersistError:
        """Latch the first error, ask the run to drain, wake who waits; return the latched error."""
        with self._lock:
            known = self._error is not None
            if not known:
                self._error = error
            first = self._error or error
            waiting = [future for found in self._waiting.values() for future in found]
            self._waiting.clear()
        for future in waiting:
            if future.set_running_or_notify_cancel():
                future.set_exception(first)
        telemetry = active()
        if telemetry is not None and not known and isinstance(error, Fenced):
            telemetry.lease_lost(error)
        self._drain(first.code)
        return first

    def drain_with(self, control: Drainable) -> None:
        """Ask ``control`` to drain when something goes wrong, or the run is to stop."""
        with self._lock:
            if any(known is control for known in self._controls):
                return
            self._controls.append(control)
        if self._error is not None:
            control.request_drain(self._error.code)
        elif self.stop_reason is not None:
            control.request_drain(self.stop_reason)

    def on_stop(self, call: Callable[[str], None]) -> None:
        """Call ``call`` with the reason when the run loses its lease or is to stop."""
        with self._lock:
            self._on_stop.append(call)

    def _drain(self, reason: str) -> None:
        with self._lock:
            controls, calls = list(self._controls), list(self._on_stop)
        for control in controls:
            control.request_drain(reason)
        for call in calls:
            call(reason)

    # --- the lease --------------------------------------------------------------------------------------------

    def send_renewal(self) -> Future[CommitReceipt]:
        """Send a renewal of the lease."""
        lease = self.lease
        return self.coordinator.commit(
            RenewLease(
                space=lease.space,
                command_id=new_id(),
                run_id=lease.run_id,
                epoch=lease.epoch,
                ttl_us=int(self.ttl * 1_000_000),
            ),
        )

    def renewed(self, sent: float, receipt: CommitReceipt) -> None:
        """Note a successful renewal, and that the run is to stop if it says so."""
        self.renewed_at = max(self.renewed_at, sent)
        reason = receipt.result["stop_reason"]
        if receipt.result["control"] == "stopping":
            self.stop(reason or "stop")
        else:
            self.ends_in(receipt.result["deadline_in_us"])

    def stop(self, reason: str) -> None:
        """Note that the run is to stop; the first reason counts."""
        if self.stop_reason is None:
            self.stop_reason = reason
            self._drain(reason)

    def ends_in(self, left_us: int | None) -> None:
        """Note how far away the run's deadline is (None: it has none); one that has passed is asked to be kept."""
        if left_us is None:
            return
        if left_us > 0:
            self.deadline_at = time.monotonic() + left_us / 1_000_000
            return
        lease = self.lease
        stop = RequestStop(space=lease.space, command_id=new_id(), run_id=lease.run_id, reason="deadline")
        self.coordinator.commit(stop).add_done_callback(self._stop_requested)

    def _stop_requested(self, stopped: Future[CommitReceipt]) -> None:
        """Learn by a renewal what the run is stopped for: somebody may have been quicker."""
        if stopped.exception() is None:
            sent = time.monotonic()

            def renewed(done: Future[CommitReceipt]) -> None:
                if done.exception() is None:
                    self.renewed(sent, done.result())

            self.send_renewal().add_done_callback(renewed)

    def renewal_failed(self, error: BaseException) -> None:
        """Note a failed renewal: a refusal ends the ownership, anything else may pass in time."""
        if isinstance(error, Fenced) and not isinstance(error, RunStopping):
            self.fail(error)

    def expire_locally(self) -> None:
        """Note that no renewal succeeded for the length of the lease."""
        self.fail(
            LeaseExpired(
                f"no renewal of the lease of run {self.lease.run_id} succeeded for {self.ttl} s; claim the run again",
                run_id=self.lease.run_id,
                epoch=self.lease.epoch,
            ),
        )

    # --- which checkpoints are durable --------------------------------------------------------------------------

    def sent(self, checkpoint_id: str) -> None:
        """Note that the commit of a checkpoint is on its way: it needs its caller no more."""
        with self._lock:
            self._sent.add(checkpoint_id)

    def is_sent(self, checkpoint_id: str) -> bool:
        """Return whether a checkpoint is committed, or its commit on its way."""
        with self._lock:
            return checkpoint_id in self._sent or checkpoint_id in self._durable

    def durable(self, checkpoint_id: str) -> None:
        """Note that a checkpoint of this thread is committed."""
        with self._lock:
            self._sent.discard(checkpoint_id)
            self._durable[checkpoint_id] = None
            self._durable.move_to_end(checkpoint_id)
            if len(self._durable) > _DURABLE_REMEMBERED:
                self._durable.popitem(last=False)
            waiting = self._waiting.pop(checkpoint_id, [])
        for future in waiting:
            if future.set_running_or_notify_cancel():
                future.set_result(True)

    def when_durable(self, checkpoint_id: str) -> Future[bool]:
        """Return a future that is done when the checkpoint is committed (or fails with what went wrong)."""
        with self._lock:
            error = self._error
            if error is None and checkpoint_id not in self._durable:
                future: Future[bool] = Future()
                self._waiting.setdefault(checkpoint_id, []).append(future)
                return future
        return Settled(error=error) if error is not None else Settled(True)

    def forget_waiting(self, checkpoint_id: str, future: Future[bool]) -> None:
        """Drop a future that gave up waiting."""
        with self._lock:
            found = self._waiting.get(checkpoint_id, [])
            if future in found:
                found.remove(future)

    def stored(self, checkpoint_id: str) -> Future[bool]:
        """Ask the database whether a checkpoint is stored (when this process did not see it committed)."""
        lease = self.lease
        return self.coordinator.read(
            "checkpoint_exists",
            lambda: checkpoint_queries.exists(lease.space, lease.thread_id, checkpoint_id),
        )
