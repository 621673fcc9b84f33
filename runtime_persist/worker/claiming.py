"""How a worker finds its next run: it looks whose turn it is, and claims that graph's next run."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from runtime_persist.engine import ownership, run
from runtime_persist.errors import CapacityReached, CapacityUnknown, NothingToClaim, ThreadOwned
from runtime_persist.model import limits
from runtime_persist.queries import claiming as queries

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from runtime_persist.engine import OwnedRun
    from runtime_persist.queries.claiming import Head
    from runtime_persist.runtime import Runtime
    from runtime_persist.worker.capacity import Instance
    from runtime_persist.worker.registry import Served

_ENDS_MAX = 16
_LOOKS_MAX = 16
_DOUBLINGS_MAX = 16


class Claimer:
    """Claims one run after the other for an instance.

    Attributes:
        outrun: the last look found runs, and other claimers were quicker: there may be more.

    """

    def __init__(
        self, runtime: Runtime, graphs: Mapping[str, Served], instance: Instance, runs_itself: Collection[str] = ()
    ) -> None:
        """Claim runs of ``graphs`` for the slots of ``instance``.

        Of the graphs that ``runs_itself`` names, an attempt is started by its claim: this process executes it at once.
        """
        self._runtime = runtime
        self._runs_itself = frozenset(runs_itself)
        self._instance = instance
        self._versions = {name: tuple(sorted(graph.versions)) for name, graph in graphs.items()}
        self._blocked: dict[str, tuple[int, float]] = {}  # run id -> times, not before
        self._paused: dict[str, tuple[int, float]] = {}  # graph -> times in a row, not before
        self._counted = True
        self.outrun = False

    def pause(self, graph: str) -> None:
        """Claim nothing of a graph for a while, whose runtime can start nothing here: each time for twice as long.

        Its runs were given back as they were, so without this they would be claimed again at once, without end.
        """
        tries, _ = self._paused.get(graph, (0, 0.0))
        seconds = min(limits.PAUSE_SECONDS * 2 ** min(tries, _DOUBLINGS_MAX), limits.PAUSE_SECONDS_MAX)
        self._paused[graph] = (tries + 1, time.monotonic() + seconds)

    def go_on(self, graph: str) -> None:
        """Forget that a graph's runtime could start nothing: it has started an attempt."""
        self._paused.pop(graph, None)

    def back_off(self, run_id: str) -> None:
        """Leave a run whose takeover is blocked to others for a while: each time for twice as long.

        Others may be able to prove what this machine cannot. It is looked at again as soon as it is not blocked.
        """
        tries, _ = self._blocked.get(run_id, (0, 0.0))
        lease_ttl = self._runtime.engine.lease_ttl
        seconds = min(lease_ttl * 2 ** min(tries + 1, _DOUBLINGS_MAX), max(lease_ttl, limits.BLOCKED_SECONDS_MAX))
        now = time.monotonic()
        forgotten = now - limits.BLOCKED_SECONDS_MAX
        self._blocked = {one: known for one, known in self._blocked.items() if known[1] > forgotten}
        self._blocked[run_id] = (tries + 1, now + seconds)

    def claim(self) -> tuple[OwnedRun, Mapping[str, Any]] | None:
        """Claim the run whose turn it is and return it with the claim's answer; None: there is nothing to claim now.

        The first look takes what is free. When others serve the graphs at this moment, it waits for them and looks
        again whose turn it is.
        """
        self.outrun = False
        for number in range(_LOOKS_MAX):
            heads = self._look()
            graphs = {head.graph for head in heads if head.kind != queries.TO_END}
            for head in heads:
                try:
                    return self._take(head, alone=len(graphs) == 1, waits=number > 0)
                except NothingToClaim as nothing:
                    self.outrun = self.outrun or bool(nothing.details.get("served"))
                except ThreadOwned:
                    continue
                except CapacityUnknown:
                    self._instance.report_again()
                    self.outrun = self._counted  # once: a report that does not count again is waited with
                    self._counted = False
                    return None
                except CapacityReached as reached:
                    if reached.details["gate"] == "instance":
                        return None
            if not self.outrun:
                return None
        return None

    def _look(self) -> list[Head]:
        engine = self._runtime.engine
        found = engine.coordinator.read(
            "read_heads", lambda: queries.heads(engine.space, self._versions, _ENDS_MAX)
        ).result()
        for head in found:
            if not head.blocked:
                self._blocked.pop(head.run_id, None)
        now = time.monotonic()
        return [
            head for head in found if self._blocked.get(head.run_id, (0, now))[1] <= now and self._serves(head, now)
        ]

    def _serves(self, head: Head, now: float) -> bool:
        return head.kind == queries.TO_END or self._paused.get(head.graph, (0, now))[1] <= now

    def _others(self, graph: str) -> tuple[str, ...]:
        """Return what is served besides a graph: whose runs come before a claim of it that is nobody's turn."""
        now = time.monotonic()
        served = {
            name: versions
            for name, versions in self._versions.items()
            if name != graph and self._paused.get(name, (0, now))[1] <= now
        }
        return tuple(queries.keys(served))

    def _take(self, head: Head, *, alone: bool, waits: bool) -> tuple[OwnedRun, Mapping[str, Any]]:
        taken = self._commit(head, alone=alone, waits=waits)
        self._counted = True
        return taken

    def _commit(self, head: Head, *, alone: bool, waits: bool) -> tuple[OwnedRun, Mapping[str, Any]]:
        engine, serde = self._runtime.engine, self._runtime.checkpointer.serde
        if head.kind == queries.TO_END:
            return run(ownership.claim(engine, serde, head.names, ()))
        unshared = alone and not head.limited
        return run(
            ownership.claim_next(
                engine,
                serde,
                head.graph,
                head.kind,
                versions=self._versions[head.graph],
                instance_id=self._instance.instance_id,
                served_no=None if unshared else head.served_no,
                others=self._others(head.graph) if unshared else (),
                waits=waits,
                starts=head.graph in self._runs_itself,
            )
        )
