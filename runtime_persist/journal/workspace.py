"""``workspace``: a node works in a directory that nobody else works in, and whoever takes the run over knows of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self, TypeVar

from runtime_persist.engine import Flow, arun, run
from runtime_persist.engine.workspaces import WorkspaceHold, close_workspace, lock_workspace, open_workspace
from runtime_persist.errors import InvalidInput, RuntimePersistError, WorkspaceBusy
from runtime_persist.journal.bubble import bubbling
from runtime_persist.journal.place import current_run

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from types import TracebackType

    from runtime_persist.engine import OwnedRun

R = TypeVar("R")


class workspace:  # noqa: N801 (it is used like a function)
    """Work in a directory: ``with workspace(path) as place`` or ``async with``, in a node or anywhere.

    The directory is locked for one user at a time (no file is left in it). In a node of a run it is an execution domain
    too: when this process dies here, nobody goes on with the run before it is proved that nothing writes there any
    more. What is proved is that the process that opened it is gone or has let go of it, and that no program runs that
    was started with ``env=place.environ``; a program that was started without it is not known of.

    Attributes:
        path: the directory, without symbolic links.
        environ: environment for programs that are started in it, so that they are found and ended.

    Raises (on entering):
        InvalidInput: there is no such directory, or it cannot be locked on its file system.
        WorkspaceBusy: another attempt or node works in it.
        OperationNeedsRun: inside a graph that is not bound to a run.
        Fenced: the run is not this process's any more, or is being stopped.

    """

    def __init__(self, path: str | Path) -> None:
        """Work in ``path``, an existing directory."""
        self._path = path
        self._owned: OwnedRun | None = None
        self._held: WorkspaceHold | None = None

    @property
    def path(self) -> Path:
        """Return the directory (raises InvalidInput outside the ``with`` block)."""
        return self._in_use().path

    @property
    def environ(self) -> Mapping[str, str]:
        """Return the environment for programs that are started in it (raises InvalidInput outside the block)."""
        return self._in_use().environ

    def __enter__(self) -> Self:
        """Lock the directory."""
        run(self._opened())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Let go of the directory."""
        run(self._closed())

    async def __aenter__(self) -> Self:
        """Lock the directory."""
        await arun(self._opened())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Let go of the directory."""
        await arun(self._closed())

    def _opened(self) -> Flow[None]:
        if self._held is not None:
            msg = f"workspace {self._held.path} is entered already; make another one"
            raise InvalidInput(msg)
        self._owned = current_run("workspace")
        if self._owned is None:
            self._held = lock_workspace(self._path)
        else:
            self._held = yield from _guarded(open_workspace(self._owned, self._path))

    def _closed(self) -> Flow[None]:
        held, self._held = self._in_use(), None
        yield from _guarded(close_workspace(self._owned, held))

    def _in_use(self) -> WorkspaceHold:
        if self._held is None:
            msg = f"workspace {self._path} is not in use; enter it with a with block"
            raise InvalidInput(msg)
        return self._held


def _guarded(flow: Flow[R]) -> Flow[R]:
    """Run a flow; what is the node's to handle is raised as it is, the rest passes through nodes and tools."""
    try:
        return (yield from flow)
    except (InvalidInput, WorkspaceBusy):
        raise
    except RuntimePersistError as error:
        raise bubbling(error) from error.__cause__
