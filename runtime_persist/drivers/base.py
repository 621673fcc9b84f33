"""What a driver is: it takes jobs from any thread or event loop and answers with a future."""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from runtime_persist.errors import Closed, RuntimePersistError
from runtime_persist.telemetry import active

if TYPE_CHECKING:
    from concurrent.futures import Future

    from runtime_persist.dialects import DatabaseUrl, Dialect
    from runtime_persist.drivers.bus import Bus
    from runtime_persist.plan import BundleCall, Plan

R = TypeVar("R")
Hook = Callable[[str], None]


class Mode(Enum):
    """How a plan's steps are committed."""

    HOT = "hot", True  # each step commits by itself: a bundle is one statement and one round trip
    TRANSACTION = "transaction", True  # all steps commit together
    READ = "read", False  # nothing is written; each step sees what is committed when it runs
    SNAPSHOT = "snapshot", False  # nothing is written; all steps see one moment

    def __init__(self, _name: str, writes: bool) -> None:  # noqa: FBT001 (as the members are written)
        """Know whether the plan may write."""
        self.writes = writes


class Job(NamedTuple, Generic[R]):
    """A plan to run.

    Attributes:
        name: of the command or query, for cuts and messages.
        plan: makes the generator, once for each try.
        mode: how its steps are committed.
        delay: (error, tries so far) -> seconds to wait before the next try, or None to give up.
        surrender: (error, whether a commit may have happened) -> the error the caller gets.
        urgent: it must not wait behind commands that wait for locks (renewing a lease).
        order: hot jobs of one order (a run, or a thread) are committed in the order in which they were submitted.
        brief: it reads a few rows by key: a driver without a network may do it at once, where it was asked.

    """

    name: str
    plan: Callable[[], Plan[R]]
    mode: Mode
    delay: Callable[[RuntimePersistError, int], float | None]
    surrender: Callable[[RuntimePersistError, bool], RuntimePersistError]
    urgent: bool = False
    order: str | None = None
    brief: bool = False


class _Caller(threading.local):
    """What the calling thread does next.

    Attributes:
        waits: it waits for what it submits and does nothing else meanwhile: it may as well do the work itself.

    """

    waits = False


caller = _Caller()


class _Process:
    """This process; a fork makes another one (asking the system for a process id each time costs more)."""

    def __init__(self) -> None:
        self.forks = 0
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forked)

    def _forked(self) -> None:
        self.forks += 1


_process = _Process()


class Driver(ABC):
    """Runs jobs on one database."""

    def __init__(self, url: DatabaseUrl, dialect: Dialect, hook: Hook | None) -> None:
        """Remember the process: connections and threads do not survive a fork."""
        self.url = url
        self.dialect = dialect
        self._hook = hook
        self._telemetry = active()
        self._forks = _process.forks
        self._pid = os.getpid()
        self._closed = False
        self._gate = threading.Lock()

    @abstractmethod
    def submit(self, job: Job[R]) -> Future[R]:
        """Run a job in the background. The future cannot be cancelled once the job runs."""

    @abstractmethod
    def close(self) -> None:
        """Finish what is queued, then let go of connections and threads. Closing twice does nothing."""

    @property
    def losses(self) -> int:
        """Return how many connections ended by themselves.

        What was acknowledged before one of them may be gone: the server may be another one now, promoted with less
        than the old one had.
        """
        return 0

    def open_bus(self) -> Bus | None:
        """Return a new bus to the other processes at this database (None: there are none)."""
        return None

    def script(self, sql: str) -> None:
        """Run a script of DDL on the writing connection (only a private in-memory database needs it)."""
        raise NotImplementedError(sql)

    def check_usable(self) -> None:
        """Raise :class:`Closed` after :meth:`close`, or in a process forked from the one that opened the driver."""
        if self._closed:
            raise Closed
        if self._forks != _process.forks:
            msg = "this runtime was opened before the process forked; open a new one in the child"
            raise Closed(msg, opened_by=self._pid)

    def begin_to_close(self) -> bool:
        """Refuse jobs from now on; return whether there is something to let go of.

        A forked child has neither the threads nor the right to the connections: it leaves them alone.
        """
        if self._forks != _process.forks:
            self._closed = True
        if self._closed:
            return False
        with self._gate:  # nothing may be queued behind the end
            first, self._closed = not self._closed, True
        return first

    def committed(self, commands: int) -> None:
        """Note how many commands one transaction committed."""
        if self._telemetry is not None and commands and self._telemetry.heard:
            self._telemetry.batch(self.dialect.name, commands)

    @property
    def hooked(self) -> bool:
        """Return whether somebody wants to hear of fault cuts."""
        return self._hook is not None

    def reached(self, cut: str) -> None:
        """Tell the hook that a fault cut is reached."""
        if self._hook is not None:
            self._hook(cut)


def arrays_of(call: BundleCall) -> dict[str, Any]:
    """Return a bundle's parameters with each row parameter as one array a column."""
    values: dict[str, Any] = dict(call.params)
    for fragment in call.bundle.fragments:
        if fragment.rows:
            rows: Sequence[Mapping[str, Any]] = call.rows.get(fragment.name, ())
            for column in fragment.rows:
                values[f"{fragment.name}__{column}"] = [row[column] for row in rows]
    return values
