"""Futures of jobs: what a driver answers with. Cheaper than the standard ones, which a hot command would notice.

Nobody can cancel them: what was sent goes on to its end. They work wherever a future is asked for its outcome or calls
back; ``concurrent.futures.wait`` and ``as_completed`` look into a future and do not know them.
"""

from __future__ import annotations

import logging
import threading
from concurrent.futures import Future, InvalidStateError
from typing import TYPE_CHECKING, TypeVar

from runtime_persist.drivers import wakes

if TYPE_CHECKING:
    from collections.abc import Callable

R = TypeVar("R")
_log = logging.getLogger(__name__)


class _Uncancellable(Future[R]):
    """What pending and settled jobs have in common."""

    def __init__(self, result: R | None = None, error: BaseException | None = None) -> None:
        self._settled = result
        self._error = error

    def cancelled(self) -> bool:
        """Return False."""
        return False

    def cancel(self) -> bool:
        """Return False: it goes on to its end."""
        return False

    def result(self, timeout: float | None = None) -> R:
        """Return the result, or raise the error."""
        error = self.exception(timeout)
        if error is not None:
            try:
                raise error
            finally:
                del error  # its traceback names this frame, which must not name it
        return self._settled  # type: ignore[return-value]  # without an error it is a result


class Settled(_Uncancellable[R]):
    """The outcome of a job that was done where it was asked for: nobody waits for it, so it needs no lock."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._settled!r:.100}, {self._error!r})"

    def done(self) -> bool:
        """Return True."""
        return True

    def running(self) -> bool:
        """Return False."""
        return False

    def exception(self, timeout: float | None = None) -> BaseException | None:  # noqa: ARG002 (a future's signature)
        """Return the error, None when there is none."""
        return self._error

    def add_done_callback(self, fn: Callable[[Future[R]], object]) -> None:
        """Call ``fn`` now."""
        fn(self)


class Pending(_Uncancellable[R]):
    """The outcome of a job that another thread does. Who waits for it wakes first whom this thread holds back."""

    def __init__(self) -> None:
        """Wait for :meth:`set_result` or :meth:`set_exception`."""
        super().__init__()
        self._done = False
        self._lock = threading.Lock()
        self._waiting: list[threading.Lock] = []  # each is let go when this is done
        self._calls: list[Callable[[Future[R]], object]] = []

    def __repr__(self) -> str:
        return f"{type(self).__name__}({f'{self._settled!r:.100}, {self._error!r}' if self._done else '…'})"

    def done(self) -> bool:
        """Return whether there is an outcome."""
        return self._done

    def running(self) -> bool:
        """Return whether there is none yet."""
        return not self._done

    def set_running_or_notify_cancel(self) -> bool:
        """Return True: nobody has cancelled it."""
        return True

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Wait for the outcome; return the error, None when there is none.

        Raises:
            TimeoutError: no outcome within ``timeout`` seconds (None: there is no such bound).

        """
        if not self._done:
            wakes.release()
            self._wait(timeout)
        return self._error

    def add_done_callback(self, fn: Callable[[Future[R]], object]) -> None:
        """Call ``fn`` when there is an outcome, or now."""
        with self._lock:
            if not self._done:
                self._calls.append(fn)
                return
        self._call(fn)

    def set_result(self, result: R) -> None:
        """Give the result."""
        self._settle(result, None)

    def set_exception(self, exception: BaseException | None) -> None:
        """Give the error."""
        self._settle(None, exception)

    def _settle(self, result: R | None, error: BaseException | None) -> None:
        with self._lock:
            if self._done:
                msg = f"{self!r} has an outcome already"
                raise InvalidStateError(msg)
            self._settled, self._error = result, error
            self._done = True
        for waiting in self._waiting:
            waiting.release()
        for fn in self._calls:
            self._call(fn)

    def _wait(self, timeout: float | None) -> None:
        mine = threading.Lock()
        mine.acquire()
        with self._lock:
            if self._done:
                return
            self._waiting.append(mine)
        if not mine.acquire(timeout=-1 if timeout is None else max(0.0, timeout)):
            msg = f"no outcome within {timeout:g} s"
            raise TimeoutError(msg)

    def _call(self, fn: Callable[[Future[R]], object]) -> None:
        try:
            fn(self)
        except Exception:  # noqa: BLE001 (the others are called all the same)
            _log.exception("a callback of a job failed")
