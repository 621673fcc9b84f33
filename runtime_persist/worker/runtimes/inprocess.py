"""The in-process runtime: the worker runs the graph itself, on the thread of the attempt."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from runtime_persist.model.evidence import IN_PROCESS, Observed
from runtime_persist.worker.graph_run import GraphRun
from runtime_persist.worker.runtimes.base import Life, Sighting
from runtime_persist.worker.workspaces import place_of

if TYPE_CHECKING:
    from runtime_persist.runtime import Runtime
    from runtime_persist.worker.runtimes.base import Dispatch, Handle

_FENCED: Final = "an in-process attempt writes under its lease only, and that is gone"


class InProcess:
    """Runs graphs in the worker. It opens no execution domain: the writes that count are fenced ones."""

    name = IN_PROCESS

    def check(self, _runtime: Runtime, _graph: str) -> None:
        """Accept every graph."""

    def execute(self, attempt: Dispatch) -> None:
        """Run the graph to its end, which it settles itself."""
        if not attempt.is_started:
            attempt.request_start(self.name)
            attempt.report(Observed.RUNNING)
        served, grace = attempt.served, attempt.stop_grace_seconds
        place = None if served.workspace is None else place_of(served.workspace, attempt.owned)
        GraphRun(attempt.runtime, attempt.owned, served.graph, attempt.control, grace, workspace=place).run()

    def inspect(self, _handle: Handle) -> Sighting:
        """Say that nothing of it can write any more, whatever its thread does."""
        return Sighting(Life.GONE, _FENCED)

    def stop(self, _handle: Handle) -> Sighting:
        """Say the same: there is nothing to end."""
        return Sighting(Life.GONE, _FENCED)
