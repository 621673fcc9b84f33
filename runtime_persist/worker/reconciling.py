"""Before a lost attempt is followed by another one, its runtime is asked what became of it."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING

from runtime_persist.engine import settling
from runtime_persist.engine.flow import in_thread
from runtime_persist.queries import runs as run_queries
from runtime_persist.recovery import runs as recovery
from runtime_persist.worker.runtimes.base import Life

if TYPE_CHECKING:
    from runtime_persist.engine import Engine, Flow, OwnedRun
    from runtime_persist.worker.runtimes import AttemptRuntime, Runtimes, Sighting
    from runtime_persist.worker.runtimes.base import Handle


def reconciled(engine: Engine, owned: OwnedRun, runtimes: Runtimes) -> Flow[bool]:
    """Return whether the attempt before had ended by itself: its end counts, and nothing is to be executed.

    One that is still alive is ended, as far as its runtime can. What it can write to outside is another matter: that is
    for the revokers of its domains, and was proved before.
    """
    rows = yield engine.coordinator.read(
        "read_attempts", lambda: run_queries.attempts_of(engine.space, owned.lease.run_id)
    )
    last = recovery.asked_attempt(rows)
    if last is None:
        return False
    runtime = runtimes.find(last["runtime"])
    if runtime is None:
        return False
    sighting: Sighting = yield from in_thread(partial(_look, runtime, json.loads(last["handle"])))
    if sighting.finished:
        yield from settling.finish(engine, owned, sighting.result)
    return sighting.finished


def _look(runtime: AttemptRuntime, handle: Handle) -> Sighting:
    sighting = runtime.inspect(handle)
    return runtime.stop(handle) if sighting.life is Life.ALIVE else sighting
