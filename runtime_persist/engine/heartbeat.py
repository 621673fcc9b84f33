"""Heartbeats: one thread renews the leases of all runs this process owns.

A heartbeat extends the lease and brings back whether the run is being stopped. It never proves that anything runs.
"""

from __future__ import annotations

import math
import threading
import time
from typing import TYPE_CHECKING

from runtime_persist.model import limits

if TYPE_CHECKING:
    from concurrent.futures import Future

    from runtime_persist.coordinator import CommitReceipt
    from runtime_persist.engine.owned import OwnedRun


class Heartbeats:
    """Renews leases at a third of their length.

    A run with a deadline is renewed when that has passed, too: the answer says by the database's clock whether it has.

    The youngest run first: a run that another one's node started must not hold its thread longer than that one, whose
    next holder starts it again. A renewal that fails and is followed by a good one in time harms nothing. When none
    succeeds for the length of the lease, the run is told that it lost it, before its next write would be refused.
    """

    def __init__(self, ttl: float) -> None:
        """Renew leases of ``ttl`` seconds; the thread starts with the first run."""
        self._ttl = ttl
        self._every = ttl / limits.LEASE_RENEWALS_PER_TTL
        self._runs: dict[OwnedRun, None] = {}
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closed = False
        self._sooner = False

    def add(self, run: OwnedRun) -> None:
        """Renew this run's lease from now on."""
        with self._changed:
            self._runs[run] = None
            if run.deadline_at is not None:
                self._sooner = True
                self._changed.notify_all()
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._beat,
                    name="runtime-persist-heartbeat",
                    daemon=True,
                )
                self._thread.start()

    def remove(self, run: OwnedRun) -> None:
        """Stop renewing this run's lease."""
        with self._changed:
            self._runs.pop(run, None)

    def close(self) -> None:
        """Stop the thread."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()

    def _beat(self) -> None:
        beat_at = time.monotonic() + self._every
        while True:
            with self._changed:
                self._sooner = False
                wake_at = min([beat_at, *(run.deadline_at for run in self._runs if run.deadline_at is not None)])
                self._changed.wait_for(lambda: self._closed or self._sooner, timeout=wake_at - time.monotonic())
                if self._closed:
                    return
                now = time.monotonic()
                beat = now >= beat_at
                runs = [run for run in self._runs if beat or (run.deadline_at or math.inf) <= now]
            if beat:
                beat_at = now + self._every
            for run in reversed(runs):
                run.deadline_at = None  # the answer brings it back
                self._renew(run)

    def _renew(self, run: OwnedRun) -> None:
        sent = time.monotonic()
        if sent - run.renewed_at > self._ttl:
            run.expire_locally()
            return
        try:
            future = run.send_renewal()
        except Exception as error:  # noqa: BLE001 (a closed engine: the run hears of it at its next write)
            run.renewal_failed(error)
            return

        def done(future: Future[CommitReceipt]) -> None:
            error = future.exception()
            if error is None:
                run.renewed(sent, future.result())
            else:
                run.renewal_failed(error)

        future.add_done_callback(done)
