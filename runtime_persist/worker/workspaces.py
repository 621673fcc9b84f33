"""The directory that an attempt works in: made before its start fence, opened for its graph, put away at its end."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from runtime_persist.engine import worktrees
from runtime_persist.model.workspace import Isolation, Workspace
from runtime_persist.queries import graphs as graph_queries
from runtime_persist.telemetry import logger

if TYPE_CHECKING:
    from runtime_persist.engine import Engine, Flow, OwnedRun
    from runtime_persist.worker.registry import Served

_log = logger("runtime_persist.worker")


def place_of(workspace: Workspace, owned: OwnedRun) -> Path:
    """Return where an attempt works."""
    if workspace.isolation == Isolation.GIT_WORKTREE:
        return worktrees.path_of(workspace, owned.lease.run_id, owned.lease.epoch)
    return Path(workspace.path)


def prepare(engine: Engine, owned: OwnedRun, served: Served) -> Flow[None]:
    """Make the attempt's directory, once more sure that no other attempt shares it.

    Raises:
        UnsafeWorkspace: somebody registered the graph with a higher limit since.
        InvalidInput, MissingDependency: the directory is not there, or Git refuses.

    """
    workspace = served.workspace
    if workspace is None:
        return
    known = yield engine.coordinator.read("read_graphs", lambda: graph_queries.registered(engine.space))
    row = known.get(owned.graph)
    workspace.check_shared(owned.graph, None if row is None else row["max_concurrency"])
    if workspace.isolation == Isolation.GIT_WORKTREE:
        worktrees.add_worktree(workspace, owned.lease.run_id, owned.lease.epoch)
    else:
        worktrees.check_workspace(workspace)


def put_away(owned: OwnedRun, served: Served) -> None:
    """Remove the attempt's worktree; what somebody may still need of it stays, and is named in the log."""
    workspace = served.workspace
    if workspace is None or workspace.isolation != Isolation.GIT_WORKTREE:
        return
    kept = worktrees.end_attempt(workspace, owned.lease.run_id, owned.lease.epoch)
    if kept is not None:
        _log.warning("the workspace of an attempt is kept: %s", kept, extra={"run_id": owned.lease.run_id})
