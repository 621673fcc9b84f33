"""The subprocess runtime: one child process for each attempt. It can be killed, and its end is proved."""

from __future__ import annotations

import json
import signal
import sys
import time
from typing import TYPE_CHECKING, Any, Final, Self

from langgraph.errors import GraphDrained

from runtime_persist.adapters.workflow.values import ValueSerializer
from runtime_persist.dialects.url import MEMORY
from runtime_persist.engine import processes, run, settling
from runtime_persist.engine.endings import CANCELLED, DRAINED, FAILED, LEFT, Ending, broken
from runtime_persist.errors import (
    AttemptFailed,
    DomainsOpen,
    Fenced,
    InvalidInput,
    RunStopping,
    RuntimeFailed,
    RuntimePersistError,
)
from runtime_persist.model import limits
from runtime_persist.model.domains import Revoked
from runtime_persist.model.evidence import SUBPROCESS, Observed
from runtime_persist.model.ids import new_id
from runtime_persist.model.processes import ProcessIdentity
from runtime_persist.model.text import redacted, storable
from runtime_persist.worker.runtimes.base import Asked, Life, Sighting
from runtime_persist.worker.runtimes.spawning import Spawner

if TYPE_CHECKING:
    from collections.abc import Collection
    from types import TracebackType

    from runtime_persist.runtime import Runtime
    from runtime_persist.worker.runtimes.base import Dispatch, Handle
    from runtime_persist.worker.runtimes.spawning import Child

DOMAIN_KIND: Final = "process"
EXIT_ERROR: Final = "process_exit_error"
_LIFE: Final = {
    processes.Life.ALIVE: Life.ALIVE,
    processes.Life.GONE: Life.GONE,
    processes.Life.UNKNOWN: Life.UNKNOWN,
}


class SubprocessRuntime:
    """Executes each attempt in a process of its own (Linux).

    The worker renews the lease, so a node that blocks the interpreter cannot lose it; a run that is stopped, or past
    its deadline, ends although its node never returns; what crashes takes nothing else with it. Use it with ``with``,
    or call :meth:`close` in the end.
    """

    name = SUBPROCESS

    def __init__(
        self,
        registry: str,
        *,
        serde: str | None = None,
        metadata_keys: Collection[str] | None = None,
        spawner: Spawner | None = None,
    ) -> None:
        """Find graphs in the children as the worker does.

        Args:
            registry: ``module:attribute`` of the worker's graphs.
            serde: ``module:attribute`` of the serializer, when ``Runtime.open`` was given one.
            metadata_keys: as ``Runtime.open`` was given them.
            spawner: what forks the children (None: one of its own).

        """
        self._registry = registry
        self._serde = serde
        self._metadata_keys = metadata_keys
        self._spawner = spawner or Spawner()

    def check(self, runtime: Runtime, graph: str) -> None:
        """Raise InvalidInput when a child could not execute the graph, or could not open this database."""
        if sys.platform != "linux":
            msg = f"graph {graph!r}: the subprocess runtime proves by /proc that a process has ended, so it needs Linux"
            raise InvalidInput(msg)
        if runtime.engine.url.location == MEMORY:
            msg = f"graph {graph!r}: a database in memory cannot be opened by a child process; use a file"
            raise InvalidInput(msg)
        if self._serde is None and not isinstance(runtime.checkpointer.serde, ValueSerializer):
            name = type(runtime.checkpointer.serde).__name__
            msg = f"graph {graph!r}: say where a child finds your serializer {name}: SubprocessRuntime(…, serde=…)"
            raise InvalidInput(msg)

    def close(self) -> None:
        """End all children and what forks them."""
        self._spawner.close()

    def __enter__(self) -> Self:
        """Return the runtime."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()

    def inspect(self, handle: Handle) -> Sighting:
        """Return whether the process is alive; how its graph ended only its own worker knew."""
        seen = processes.look(ProcessIdentity.of(handle))
        return Sighting(_LIFE[seen.life], seen.saw)

    def stop(self, handle: Handle) -> Sighting:
        """Kill the process with all that belongs to it."""
        proof = processes.end(ProcessIdentity.of(handle), mark=str(handle.get("mark", "")))
        if isinstance(proof, Revoked):
            return Sighting(Life.GONE, proof.saw)
        return Sighting(Life.UNKNOWN, proof.why)

    def execute(self, attempt: Dispatch) -> None:
        """Execute an attempt in a child: spawn, open its domain, start fence, order; then attend it to its end."""
        domain_id = new_id()

        def hear(what: str, said: Any) -> None:
            attempt.inbox.put(Asked(what, said))

        try:
            child = self._spawner.spawn(domain_id, hear)
        except RuntimeFailed:
            attempt.give_back()
            raise
        try:
            _Attended(attempt, child, domain_id, self._order(attempt)).execute()
        finally:
            child.close()

    def _order(self, attempt: Dispatch) -> dict[str, Any]:
        engine, lease, serde = attempt.runtime.engine, attempt.owned.lease, attempt.runtime.checkpointer.serde
        modes, subgraphs = engine.wishes.of(lease.run_id)
        return {
            "url": engine.url.whole,
            "space": engine.space,
            "schema": engine.dialect.schema,
            "registry": self._registry,
            "serde": self._serde,
            "strict": serde.strict if isinstance(serde, ValueSerializer) and self._serde is None else "imported",
            "metadata_keys": None if self._metadata_keys is None else list(self._metadata_keys),
            "max_value_bytes": engine.max_value_bytes,
            "lease_ttl": engine.lease_ttl,
            "stop_grace_seconds": attempt.stop_grace_seconds / 2,  # its node is cancelled before it is killed
            "path": sys.path,
            "graph": attempt.owned.graph,
            "version": attempt.served.version,
            "traceparent": attempt.owned.traceparent,
            "read": {"modes": sorted(modes), "subgraphs": subgraphs},  # by whoever follows its live stream
            "lease": {
                "space": lease.space,
                "run_id": lease.run_id,
                "thread_id": lease.thread_id,
                "epoch": lease.epoch,
                "worker_id": lease.worker_id,
                "attempt_id": attempt.owned.attempt_id,
            },
        }


class _Attended:
    """A child and its attempt, from the start fence to the proof of its end."""

    def __init__(self, attempt: Dispatch, child: Child, domain_id: str, order: dict[str, Any]) -> None:
        self._attempt = attempt
        self._child = child
        self._domain_id = domain_id
        self._order = order
        self._identity = processes.identify(child.pid)
        self._ending: Ending | None = None
        self._stopped: str | None = None
        self._status: int | None = None
        self._exited = self._silent = False

    def execute(self) -> None:
        attempt = self._attempt
        handle = {**self._identity.handle(), "mark": self._domain_id}
        opened = False
        try:
            attempt.open_domain(DOMAIN_KIND, handle, self._domain_id)
            opened = True
            attempt.request_start(SUBPROCESS, json.dumps(handle))
        except BaseException as error:
            self._proved_gone(opened=opened)
            if isinstance(error, RunStopping):
                run(settling.cancel(attempt.runtime.engine, attempt.owned, attempt.owned.stop_reason or "stop"))
            raise
        self._child.send({"order": self._order})
        self._attend()
        self._proved_gone(opened=True)
        self._settle()

    def _attend(self) -> None:
        """Wait until the child has ended, pass on what is asked of it; return when it does not stop in time."""
        kill_at: float | None = None
        while True:
            asked = self._attempt.asked(None if kill_at is None else kill_at - time.monotonic())
            if asked is None or asked.what in {"lost", "exited"}:
                self._note(asked)
                return
            if asked.what in {"drain", "stop"}:
                self._child.send({asked.what: asked.said})
            self._note(asked)
            if asked.what == "stop" or self._ending is not None:
                soonest = time.monotonic() + self._attempt.stop_grace_seconds
                kill_at = soonest if kill_at is None else min(kill_at, soonest)

    def _note(self, asked: Asked | None) -> None:
        """Note what was heard; a report of the child's is passed on, its ending is kept."""
        if asked is None:
            return
        if asked.what == "exited":
            self._exited, self._status = True, asked.said
        elif asked.what == "silent":
            self._silent = True
        elif asked.what == "stop" and self._stopped is None:
            self._stopped = asked.said
        elif asked.what == "said" and "ending" in asked.said and self._ending is None:
            self._ending = Ending.of(asked.said["ending"])
        elif asked.what == "said" and "running" in asked.said and self._attempt.owned.error is None:
            try:
                self._attempt.report(Observed.RUNNING)
            except RuntimePersistError as error:
                self._attempt.owned.fail(error)  # which asks for its end, too

    def _proved_gone(self, *, opened: bool) -> None:
        """End what is left of the child, and state the proof.

        Raises:
            DomainsOpen: it cannot be proved; the lease is left to run out, and whoever comes next tries again.

        """
        proof = processes.end(self._identity, mark=self._domain_id)
        if not isinstance(proof, Revoked):
            owned = self._attempt.owned
            self._attempt.runtime.engine.heartbeats.remove(owned)
            msg = f"nothing proves that the process of attempt {owned.attempt_id} has ended: {proof.why}"
            raise DomainsOpen(msg, run_id=owned.lease.run_id, domains=[self._domain_id])
        self._remaining()
        if opened:
            said = "" if self._status is None else f"{_exit(self._status)}; "
            self._attempt.close_domain(self._domain_id, f"{said}{proof.saw}", proof.how)

    def _remaining(self) -> None:
        """Hear what the child said before it ended, and how it ended; neither is waited for without end."""
        until = time.monotonic() + limits.STOP_GRACE_SECONDS
        while not (self._exited and self._silent):
            asked = self._attempt.asked(until - time.monotonic())
            if asked is None:
                return
            self._note(asked)

    def _settle(self) -> None:
        attempt, ending = self._attempt, self._ending
        error = attempt.owned.error
        if isinstance(error, Fenced):
            raise error  # the run is not ours: there is nothing to settle
        if error is not None:
            ending = broken(error)
        if ending is None and self._stopped is not None:
            ending = Ending(kind=CANCELLED, reason=self._stopped)
        if ending is None:
            ending = Ending(kind=FAILED, code=EXIT_ERROR, summary=self._how_it_ended())
        attempt.settle(ending)
        if ending.kind in {FAILED, LEFT}:
            raise AttemptFailed(f"{ending.code}: {ending.summary}", code=ending.code)
        if ending.kind == DRAINED:
            raise GraphDrained("shutdown")
        if ending.kind == CANCELLED:
            msg = f"run {attempt.owned.lease.run_id} was stopped ({ending.reason})"
            raise RunStopping(msg, run_id=attempt.owned.lease.run_id)

    def _how_it_ended(self) -> str:
        said = "its process ended, nobody saw how" if self._status is None else f"its process {_exit(self._status)}"
        lines = self._child.errors.strip()
        text = f"{said}; its standard error ended with: {lines}" if lines else said
        cut = text if len(text) <= limits.STDERR_TAIL_CHARS else f"{said}; … {lines[-limits.STDERR_TAIL_CHARS :]}"
        return storable(redacted(cut), limits.ERROR_TEXT_CHARS_MAX)


def _exit(status: int) -> str:
    if status >= 0:
        return f"ended with exit code {status}"
    try:
        return f"was ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"was ended by signal {-status}"


__all__ = ["SubprocessRuntime"]
