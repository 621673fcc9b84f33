"""Worktrees of a Git repository, one an attempt, so that attempts do not write into each other's files.

An attempt begins on a branch of its own at the repository's HEAD. When it has ended, its worktree is removed if nothing
in it is uncommitted, and its branch if nothing was committed on it; what is left is somebody's work, and is named.
"""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from runtime_persist.errors import InvalidInput, MissingDependency
from runtime_persist.model.workspace import Isolation

if TYPE_CHECKING:
    from runtime_persist.model.workspace import Workspace

_PREFIX = "runtime_persist/"
_GIT_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Worktree:
    """An attempt's worktree.

    Attributes:
        repository: the repository it is of.
        path: where it is.
        branch: which it is on.

    """

    repository: Path
    path: Path
    branch: str


def check_workspace(workspace: Workspace) -> None:
    """Look whether attempts can work there.

    Raises:
        InvalidInput: there is no such directory, or it is not the top of a Git repository with a commit.
        MissingDependency: there is no ``git``.

    """
    path = Path(workspace.path)
    if not path.is_dir():
        msg = f"the workspace {path} is not a directory on this machine"
        raise InvalidInput(msg, path=str(path))
    if workspace.isolation != Isolation.GIT_WORKTREE:
        return
    top = _git(path, "rev-parse", "--show-toplevel", wrong="is not a Git repository")
    if Path(top).resolve() != path.resolve():
        msg = f"the workspace {path} lies inside the Git repository {top}; name the repository's top"
        raise InvalidInput(msg, path=str(path))
    _git(path, "rev-parse", "--verify", "HEAD^{commit}", wrong="is a Git repository without a commit")


def add_worktree(workspace: Workspace, run_id: str, epoch: int) -> Worktree:
    """Make the worktree of an attempt beside the repository; those that earlier attempts of the run left are ended.

    Raises:
        InvalidInput, MissingDependency: see :func:`check_workspace`; Git's own words when it refuses.

    """
    check_workspace(workspace)
    repository = Path(workspace.path).resolve()
    for path in sorted(_folder(repository).glob(f"{run_id}-*")):
        end_worktree(_worktree(repository, path.name))
    made = _worktree(repository, f"{run_id}-{epoch}")
    _git(repository, "worktree", "add", "--quiet", "-b", made.branch, str(made.path), "HEAD")
    return made


def path_of(workspace: Workspace, run_id: str, epoch: int) -> Path:
    """Return where the worktree of an attempt is."""
    return _worktree(Path(workspace.path).resolve(), f"{run_id}-{epoch}").path


def end_attempt(workspace: Workspace, run_id: str, epoch: int) -> str | None:
    """Do :func:`end_worktree` for an attempt."""
    return end_worktree(_worktree(Path(workspace.path).resolve(), f"{run_id}-{epoch}"))


def end_worktree(worktree: Worktree) -> str | None:
    """Remove what nobody needs of an ended attempt's worktree; return what stays and why, None when nothing does."""
    repository, branch = worktree.repository, worktree.branch
    if worktree.path.is_dir():
        # Without --force Git refuses when anything is modified or not under version control.
        removed = _run(repository, "worktree", "remove", str(worktree.path))
        if removed.returncode:
            return f"{worktree.path} (branch {branch}) has uncommitted changes"
    if _run(repository, "rev-parse", "--verify", "--quiet", f"refs/heads/{branch}").returncode:
        return None
    own = _git(repository, "rev-list", "--max-count=1", branch, "--not", f"--exclude={branch}", "--branches", "HEAD")
    if own:
        return f"branch {branch} has commits of its own"
    _git(repository, "branch", "-D", "--quiet", branch)
    return None


def _worktree(repository: Path, name: str) -> Worktree:
    return Worktree(repository, _folder(repository) / name, f"{_PREFIX}{name}")


def _folder(repository: Path) -> Path:
    return repository.with_name(f"{repository.name}.worktrees")


def _git(path: Path, *arguments: str, wrong: str | None = None) -> str:
    done = _run(path, *arguments)
    if done.returncode:
        msg = f"the workspace {path} {wrong or 'refused git ' + arguments[0]}: {done.stderr.strip()}"
        raise InvalidInput(msg, path=str(path))
    return done.stdout.strip()


def _run(path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    git = shutil.which("git")
    if git is None:
        msg = "a workspace with isolation='git-worktree' needs the program git"
        raise MissingDependency(msg)
    command = [git, "-C", str(path), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=_GIT_SECONDS)  # noqa: S603
