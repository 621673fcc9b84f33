"""The directory that the attempts of a graph work in, and how they are kept apart."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Self

import orjson

from runtime_persist.errors import InvalidInput, UnsafeWorkspace


class Isolation(StrEnum):
    """``none``: all attempts work in the directory itself. ``git-worktree``: each has a worktree of its own."""

    NONE = "none"
    GIT_WORKTREE = "git-worktree"


@dataclass(frozen=True, slots=True)
class Workspace:
    """Where the attempts of a graph work.

    Attributes:
        path: an absolute directory; with ``git-worktree`` the top of a Git repository.
        isolation: ``none``: every attempt works in ``path`` itself, so at most one may run at a time.
            ``git-worktree``: each attempt gets a worktree of the repository's HEAD, which is removed when it ended.

    Raises:
        InvalidInput: a path that is not absolute, or another isolation.

    """

    path: str | Path
    isolation: str = Isolation.NONE

    def __post_init__(self) -> None:
        """Refuse what cannot be meant."""
        given: object = self.path  # not everybody's code is type-checked
        if not isinstance(given, str | Path) or not Path(given).is_absolute():
            msg = f"a workspace is an absolute path, not {given!r}"
            raise InvalidInput(msg)
        if self.isolation not in set(Isolation):
            msg = f"isolation is one of {', '.join(Isolation)}, not {self.isolation!r}"
            raise InvalidInput(msg)

    def check_shared(self, graph: str, max_concurrency: int | None) -> None:
        """Raise UnsafeWorkspace when several runs at once would work in the same directory."""
        if self.isolation == Isolation.NONE and max_concurrency != 1:
            said = "no limit" if max_concurrency is None else f"max_concurrency={max_concurrency}"
            msg = (
                f"graph {graph!r} has {said}, and its runs share the directory {self.path}; "
                f"register it with max_concurrency=1, or with isolation={Isolation.GIT_WORKTREE.value!r}"
            )
            raise UnsafeWorkspace(msg, graph=graph, path=str(self.path))

    def encoded(self) -> str:
        """Return the workspace as it is stored."""
        return orjson.dumps({"path": str(self.path), "isolation": str(self.isolation)}).decode()

    @classmethod
    def decoded(cls, text: str) -> Self:
        """Return a stored workspace."""
        return cls(**orjson.loads(text))
