"""What executes attempts: the interface of a runtime, and what a worker gives it for each attempt.

A worker claims a run, ends it when it is only to be ended, proves that older attempts cannot write any more, and
activates its lease. From there on the attempt is its runtime's: :meth:`AttemptRuntime.execute` goes through the steps
of :class:`Dispatch`, in the order in which they stand there (docs/attempt-protocol.md).
"""

from __future__ import annotations

import queue
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

from runtime_persist.engine import dispatch, domains, endings, run, settling
from runtime_persist.errors import DomainsOpen, Fenced, RunStopping
from runtime_persist.model import limits
from runtime_persist.model.callbacks import CallbackToken
from runtime_persist.model.evidence import Observed

if TYPE_CHECKING:
    from langgraph.runtime import RunControl

    from runtime_persist.engine import OwnedRun
    from runtime_persist.engine.endings import Ending
    from runtime_persist.model.domains import Proof
    from runtime_persist.runtime import Runtime
    from runtime_persist.worker.registry import Served

Handle = Mapping[str, Any]


class Life(StrEnum):
    """What a runtime can prove about an attempt."""

    ALIVE = "alive"
    GONE = "gone"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Sighting:
    """What an inspection showed.

    Attributes:
        life: whether the attempt still executes.
        saw: how it is known, in a few words.
        finished: the runtime can prove that it has ended with a result: that counts.
        result: what it returned.

    """

    life: Life
    saw: str
    finished: bool = False
    result: Any = None


@dataclass(frozen=True, slots=True)
class Asked:
    """Something that an attempt in execution has to react to.

    Attributes:
        what: ``drain`` (stop at the next step; the run is queued again), ``stop`` (the run ends: stop at the next step,
            and after a while at once), ``lost`` (the lease is gone: nothing the attempt does counts any more; end it),
            or what the runtime itself put in.
        said: the reason, or what the runtime put in.

    """

    what: str
    said: Any = None


class Dispatch:
    """One attempt in the hands of its runtime, on a thread of the worker.

    Attributes:
        runtime: the opened database.
        owned: the run; the worker renews its lease.
        served: the graph.
        control: asks LangGraph's loop to stop at its next step.
        stop_grace_seconds: how long a run that is to stop may go on to its next step.
        inbox: what the attempt has to react to; a runtime may put its own things in.
        is_started: its claim has written the start fence, and that it runs (of graphs that the worker runs itself).

    """

    def __init__(
        self,
        runtime: Runtime,
        owned: OwnedRun,
        served: Served,
        control: RunControl,
        stop_grace_seconds: float,
        *,
        is_started: bool = False,
    ) -> None:
        """Hand an attempt over whose lease is active."""
        self.is_started = is_started
        self.runtime = runtime
        self.owned = owned
        self.served = served
        self.control = control
        self.stop_grace_seconds = stop_grace_seconds
        self.inbox: queue.SimpleQueue[Asked] = queue.SimpleQueue()
        self._sequence = 0
        owned.on_stop(self._to_stop)
        if owned.error is not None or owned.stop_reason is not None:  # before anybody listened
            self._to_stop(owned.stop_reason or "stop")

    def open_domain(self, kind: str, handle: Handle, domain_id: str | None = None) -> str:
        """State what the attempt will be able to write to outside the database, before it can; return its id.

        Raises:
            Fenced: the lease is gone, or the run is being stopped: start nothing.

        """
        return run(domains.open_domain(self.owned, kind, handle, domain_id=domain_id))

    def request_start(self, name: str, handle: str | None = None, *, callback: bool = False) -> str | None:
        """Write the start fence; whatever is sent to execute the attempt is sent after this.

        Args:
            name: of the runtime.
            handle: JSON by which the runtime finds the attempt again (without secrets).
            callback: also make a token that reports about the attempt without the lease.

        Returns:
            The token (None without ``callback``): it is stored nowhere, hand it to what executes the attempt.

        Raises:
            Fenced: the lease is gone, or the run is being stopped: start nothing.

        """
        keys = self.owned.coordinator.keys
        token = CallbackToken.new(self.owned.lease.run_id, self.owned.attempt_id).text if callback else None
        run(
            dispatch.request_start(
                self.owned,
                runtime=name,
                handle=handle,
                callback_hash=None if token is None else keys.callback_hash(token),
                callback_ttl_us=round(limits.CALLBACK_SECONDS * 1_000_000),
            ),
        )
        return token

    def report(self, observed: str) -> None:
        """Report that the attempt was ``accepted``, or seen ``running`` (raises Fenced)."""
        self._sequence += 1
        run(dispatch.report(self.owned, Observed(observed), self._sequence))

    def asked(self, timeout: float | None = None) -> Asked | None:
        """Wait for something to react to (None: ``timeout`` seconds have passed)."""
        try:
            return self.inbox.get(timeout=None if timeout is None else max(timeout, 0))
        except queue.Empty:
            return None

    def close_domain(self, domain_id: str, saw: str, how: Proof) -> None:
        """State the proof that what the attempt opened can no longer be written to."""
        run(domains.close_domain(self.owned, domain_id, saw, how))

    def finish(self, result: Any) -> None:
        """End the run with a result, behind the proof that the attempt has stopped (raises Fenced, DomainsOpen)."""
        run(settling.finish(self.runtime.engine, self.owned, result))

    def fail(self, error: BaseException) -> None:
        """End the attempt as failed, behind the same proof; the retry policy decides (raises Fenced, DomainsOpen)."""
        run(settling.fail_attempt(self.runtime.engine, self.owned, error))

    def settle(self, ending: Ending) -> None:
        """End the attempt, which has been proved to have stopped; what it left open outside is revoked first.

        Raises:
            Fenced: the lease is gone.
            DomainsOpen: a domain of it could not be revoked.

        """
        engine, owned = self.runtime.engine, self.owned
        try:
            run(endings.settle(engine, owned, ending))
        except DomainsOpen:  # it died while it worked in a directory, say
            if run(domains.revoke_left(engine, owned)):
                raise
            run(endings.settle(engine, owned, ending))

    def give_back(self) -> None:
        """Give back an attempt that was not started, uncounted; one that is to be stopped ends."""
        try:
            run(settling.give_back(self.runtime.engine, self.owned))
        except RunStopping:
            run(settling.cancel(self.runtime.engine, self.owned, self.owned.stop_reason or "stop"))

    def _to_stop(self, reason: str) -> None:
        lost = isinstance(self.owned.error, Fenced)
        self.inbox.put(Asked("lost" if lost else "stop", reason))


class AttemptRuntime(Protocol):
    """Executes attempts. A worker has one of each kind; ``RegisteredGraph.runtime`` names the kind of a graph.

    Attributes:
        name: stored with each attempt; whoever comes later finds the runtime of an attempt by it.

    """

    name: str

    def check(self, runtime: Runtime, graph: str) -> None:
        """Raise InvalidInput when attempts of a graph of this database cannot be executed; called before any is."""

    def execute(self, attempt: Dispatch) -> None:
        """Execute an attempt to its end, on the calling thread, and settle it; raise what went wrong with it."""

    def inspect(self, handle: Handle) -> Sighting:
        """Return what is proved about an attempt that another worker started; it changes nothing."""

    def stop(self, handle: Handle) -> Sighting:
        """End an attempt that another worker started, and return what is proved then."""
