"""Working directories of attempts, as execution domains: one user at a time, known to whoever takes the run over."""

from __future__ import annotations

import os
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from runtime_persist.engine import directories, domains, processes
from runtime_persist.model.domains import WORKSPACE
from runtime_persist.model.ids import new_id

if TYPE_CHECKING:
    from collections.abc import Mapping

    from runtime_persist.engine.flow import Flow
    from runtime_persist.engine.owned import OwnedRun


@dataclass(frozen=True, slots=True)
class WorkspaceHold:
    """A directory that this process works in.

    Attributes:
        path: the directory, without symbolic links.
        environ: environment for programs that are started in it: by its mark they are found and ended when this
            process dies (``subprocess.run(…, env=held.environ)``).
        domain_id: its execution domain (None: it belongs to no run).

    """

    path: Path
    environ: Mapping[str, str]
    domain_id: str | None
    descriptor: int


CURRENT: ContextVar[WorkspaceHold | None] = ContextVar("workspace of the attempt", default=None)


def current_workspace() -> WorkspaceHold | None:
    """Return the directory that the attempt of this node works in.

    It is the ``workspace`` that the graph was registered with, or the attempt's own worktree of it; None: the graph has
    none, or no worker executes it.
    """
    return CURRENT.get()


def lock_workspace(path: str | Path) -> WorkspaceHold:
    """Lock a directory that belongs to no run (raises InvalidInput, WorkspaceBusy)."""
    real = Path(path).resolve()
    return WorkspaceHold(real, dict(os.environ), None, directories.lock(real))


def open_workspace(owned: OwnedRun, path: str | Path) -> Flow[WorkspaceHold]:
    """Lock a directory and open its domain; it may be worked in then.

    Raises:
        InvalidInput: no directory, or one that cannot be locked.
        WorkspaceBusy: another attempt or node works in it.
        Fenced: the lease is not ours any more, or the run is being stopped.

    """
    real = Path(path).resolve()
    domain_id = new_id()
    descriptor = directories.lock(real)
    try:
        handle = {**processes.identify(os.getpid()).handle(), "path": str(real)}
        yield from domains.open_domain(owned, WORKSPACE, handle, domain_id=domain_id)
    except BaseException:
        os.close(descriptor)
        raise
    return WorkspaceHold(real, processes.marked(domain_id), domain_id, descriptor)


def close_workspace(owned: OwnedRun | None, held: WorkspaceHold) -> Flow[None]:
    """Let go of a directory: nothing of this process works in it any more."""
    os.close(held.descriptor)
    if owned is not None and held.domain_id is not None:
        yield from domains.close_domain(owned, held.domain_id, f"{held.path} was closed by who opened it")
