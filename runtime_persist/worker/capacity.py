"""What this worker's instance reports of itself, and when: at its start, at changes, and before a report runs out."""

from __future__ import annotations

import math
import socket
import time
from typing import TYPE_CHECKING

from runtime_persist.commands.report_instance import ReportInstance
from runtime_persist.model import limits
from runtime_persist.model.ids import new_id

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from runtime_persist.engine import Engine


class Instance:
    """One worker's slots, as the database knows them.

    Attributes:
        instance_id: new with every worker: what an earlier one had reported counts no more.
        slots: tasks it executes at the same time.

    """

    def __init__(self, engine: Engine, slots: int, versions: Mapping[str, Collection[str]]) -> None:
        """Have ``slots``, and serve graphs in these versions."""
        self._engine = engine
        self._graphs = {name: tuple(sorted(listed)) for name, listed in versions.items()}
        self._ttl_us = round(limits.INSTANCE_TTL_SECONDS * 1_000_000)
        self._report_no = 0
        self._said: frozenset[str] = frozenset()
        self._renewed_at = self._told_at = -math.inf
        self.instance_id = new_id()
        self.slots = slots

    def keep_reported(self, tasks: Collection[str]) -> None:
        """Report what occupies slots now, if that is due.

        ``tasks`` are those that have gone on for ``INSTANCE_CHANGES_SECONDS``. What began later holds a slot already,
        in the database, and most of it ends before it would be worth a report. What was reported and has ended would
        still hold its slot: that is reported at once.
        """
        now, active = time.monotonic(), frozenset(tasks)
        ended = self._said - active
        changed = active != self._said and now - self._told_at >= limits.INSTANCE_CHANGES_SECONDS
        if ended or changed or now - self._renewed_at >= limits.INSTANCE_TTL_SECONDS / limits.INSTANCE_REPORTS_PER_TTL:
            self._report(active)

    def report_again(self) -> None:
        """Report at the next look, whatever was reported: the database does not count on it any more."""
        self._renewed_at = -math.inf

    def leave(self, tasks: Collection[str]) -> None:
        """Report that it takes nothing more; without tasks left it is gone at once."""
        self._report(frozenset(tasks), draining=True, ttl_us=self._ttl_us if tasks else 0)

    def _report(self, active: frozenset[str], *, draining: bool = False, ttl_us: int | None = None) -> None:
        sent = time.monotonic()
        self._report_no += 1
        engine = self._engine
        engine.coordinator.commit(
            ReportInstance(
                space=engine.space,
                command_id=new_id(),
                actor=f"worker:{engine.worker_id}",
                instance_id=self.instance_id,
                worker_id=engine.worker_id,
                report_no=self._report_no,
                slots=self.slots,
                active_task_ids=tuple(sorted(active)),
                draining=draining,
                host=socket.gethostname(),
                graphs=self._graphs,
                ttl_us=self._ttl_us if ttl_us is None else ttl_us,
            )
        ).result()
        self._said, self._renewed_at, self._told_at = active, sent, sent
