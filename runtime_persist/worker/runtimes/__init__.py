"""Runtimes: what executes attempts. In the worker, in a child process for each, or wherever you make one for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime_persist.errors import InvalidInput
from runtime_persist.worker.runtimes.base import Asked, AttemptRuntime, Dispatch, Life, Sighting
from runtime_persist.worker.runtimes.inprocess import InProcess
from runtime_persist.worker.runtimes.subprocesses import SubprocessRuntime

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runtime_persist.runtime import Runtime
    from runtime_persist.worker.registry import Served


class Runtimes:
    """The runtimes of one worker, by name."""

    def __init__(self, given: Sequence[AttemptRuntime], default: str) -> None:
        """Have ``given`` beside the worker itself; ``default`` executes graphs that name none.

        Raises:
            InvalidInput: a name is used twice, or the default is none of them.

        """
        self._default = default
        self._known: dict[str, AttemptRuntime] = {InProcess.name: InProcess()}
        for runtime in given:
            if self._known.setdefault(runtime.name, runtime) is not runtime:
                msg = f"a worker has one runtime of a name; there are two called {runtime.name!r}"
                raise InvalidInput(msg)
        self.named(default)

    def named(self, name: str) -> AttemptRuntime:
        """Return a runtime by its name (raises InvalidInput)."""
        found = self.find(name)
        if found is None:
            msg = (
                f"this worker has no runtime {name!r} (it has: {', '.join(self._known)}); pass it: Worker(runtimes=[…])"
            )
            raise InvalidInput(msg, runtime=name)
        return found

    def find(self, name: str | None) -> AttemptRuntime | None:
        """Return a runtime by the name that an attempt was stored with (None: this worker has it not)."""
        return None if name is None else self._known.get(name)

    def of(self, served: Served) -> AttemptRuntime:
        """Return the runtime of a graph."""
        return self.named(served.runtime or self._default)

    def is_worker(self, served: Served) -> bool:
        """Return whether the worker itself executes a graph, in its own directory: nothing is done before it begins."""
        return self.of(served).name == InProcess.name and served.workspace is None

    def check(self, runtime: Runtime, name: str, served: Served) -> None:
        """Raise InvalidInput when a graph's attempts cannot be executed by its runtime."""
        self.of(served).check(runtime, name)


__all__ = [
    "Asked",
    "AttemptRuntime",
    "Dispatch",
    "InProcess",
    "Life",
    "Runtimes",
    "Sighting",
    "SubprocessRuntime",
]
