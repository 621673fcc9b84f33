"""What a worker tells OpenTelemetry of all runs of its space, now and then: how many are open, and how old they are."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

from runtime_persist.model import limits
from runtime_persist.queries import open_runs
from runtime_persist.telemetry import active

if TYPE_CHECKING:
    from runtime_persist.engine import Engine


class Observer:
    """Looks at the open runs, at intervals; without telemetry never."""

    def __init__(self, engine: Engine) -> None:
        """Look through ``engine``."""
        self._engine = engine
        self._looked_at = -math.inf

    def look(self) -> None:
        """Look and tell, when it is time again (raises what the database says)."""
        telemetry = active()
        if telemetry is None or time.monotonic() - self._looked_at < limits.OBSERVE_SECONDS:
            return
        space = self._engine.space
        found = self._engine.coordinator.read("read_open_counts", lambda: open_runs.open_counts(space)).result()
        telemetry.looked_at(found)
        self._looked_at = time.monotonic()
