"""What the code of an attempt runs in: its facts in every log record, and its span."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, TypeVar

from runtime_persist.telemetry import logs
from runtime_persist.telemetry.telemetry import active

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Iterator
    from types import TracebackType

R = TypeVar("R")


class AttemptScope:
    """The scope of one attempt; entered whenever its code runs, one time after the other, and ended once.

    A generator hands control back to its caller in between, who must not find himself inside the attempt: use
    :meth:`each` and :meth:`aeach` there.
    """

    def __init__(self, *, traceparent: str | None, **facts: Any) -> None:
        """Begin the attempt: ``facts`` are those of :data:`logs.FIELDS`, ``traceparent`` is stored with its run."""
        self._facts = facts
        telemetry = active()
        self._tracing = None if telemetry is None else telemetry.tracing
        self._span: Any = None
        if self._tracing is not None:
            parent = self._tracing.going_on(traceparent)
            self._span = self._tracing.start("run attempt", "CONSUMER", parent, **facts)
        self._entered: list[ExitStack] = []

    def __enter__(self) -> None:
        """Run as the attempt from here on."""
        stack = ExitStack()
        token = logs._attempt.set(self._facts)  # noqa: SLF001 (a part of it)
        stack.callback(logs._attempt.reset, token)  # noqa: SLF001 (a part of it)
        if self._tracing is not None:
            stack.enter_context(self._tracing.use(self._span))
        self._entered.append(stack)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Run as before again."""
        self._entered.pop().close()

    def ended(self, status: str | None, error: BaseException | None = None) -> None:
        """End the attempt's span, once: ``status`` is the run's then, ``error`` what the code raised."""
        span, self._span = self._span, None
        if self._tracing is not None and span is not None:
            said = {} if status is None else {"runtime_persist.run_status": status}
            self._tracing.end(span, error, **said)

    def each(self, chunks: Iterator[R]) -> Iterator[R]:
        """Yield what an iterator yields; only its own code runs as the attempt. It is closed at the end."""
        try:
            while True:
                with self:
                    try:
                        chunk = next(chunks)
                    except StopIteration:
                        return
                yield chunk
        finally:
            close = getattr(chunks, "close", None)
            if close is not None:
                with self:
                    close()

    async def aeach(self, chunks: AsyncIterator[R]) -> AsyncGenerator[R, None]:
        """Do :meth:`each` for an asynchronous iterator."""
        try:
            while True:
                with self:
                    try:
                        chunk = await anext(chunks)
                    except StopAsyncIteration:
                        return
                yield chunk
        finally:
            close = getattr(chunks, "aclose", None)
            if close is not None:
                with self:
                    await close()
