"""Spans: a run's start, its attempts, its operations, and (asked for) its commands; one trace over processes.

The context in which a run was started is stored with it. Every attempt goes on from there, whoever makes it: a trace
has all attempts of a run, on whatever machine. Ids are attributes of spans. No values, and no texts of errors.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from runtime_persist.errors import RuntimePersistError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from opentelemetry.context import Context
    from opentelemetry.trace import Span, Tracer

_PREFIX: Final = "runtime_persist."
_HEADER: Final = "traceparent"


class Tracing:
    """Makes the spans."""

    def __init__(self, tracer: Tracer) -> None:
        """Make them with ``tracer``."""
        from opentelemetry import trace
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        self._tracer = tracer
        self._trace = trace
        self._propagator = TraceContextTextMapPropagator()

    def start(self, name: str, kind: str, parent: Context | None = None, /, **facts: Any) -> Span:
        """Start a span that is not made the current one (None: it belongs to the current one)."""
        return self._tracer.start_span(
            name, context=parent, kind=self._trace.SpanKind[kind], attributes=attributes(facts)
        )

    def end(self, span: Span, error: BaseException | None, **said: Any) -> None:
        """End a span; of an error its type or code is kept."""
        span.set_attributes(said)
        if error is not None:
            span.set_attribute("error.type", name_of(error))
            span.set_status(self._trace.Status(self._trace.StatusCode.ERROR))
        span.end()

    def command(self, name: str) -> Span:
        """Start the span of a command."""
        return self.start(f"command {name}", "CLIENT", command=name)

    def carried(self, span: Span) -> str | None:
        """Return what another process needs to go on from a span; None when it belongs to no trace."""
        carrier: dict[str, str] = {}
        self._propagator.inject(carrier, self._trace.set_span_in_context(span))
        return carrier.get(_HEADER)

    def going_on(self, traceparent: str | None) -> Context | None:
        """Return the context that another process stored (None: the current one)."""
        return None if traceparent is None else self._propagator.extract({_HEADER: traceparent})

    @property
    def heard(self) -> bool:
        """Return whether somebody takes spans: a provider was given here, or to the process by now."""
        api = self._trace
        return not (
            isinstance(self._tracer, api.ProxyTracer) and isinstance(api.get_tracer_provider(), api.ProxyTracerProvider)
        )

    @contextmanager
    def operation(self, facts: Mapping[str, Any], no_error: type[Exception]) -> Iterator[None]:
        """Span one try of an operation; what it calls belongs to it. ``no_error`` is no failure of it."""
        span = self.start(f"operation {facts['operation_name']}", "CLIENT", **facts)
        with self._trace.use_span(span, end_on_exit=False, record_exception=False, set_status_on_exception=False):
            try:
                yield
            except BaseException as error:
                self.end(span, None if isinstance(error, no_error) else error)
                raise
        self.end(span, None)

    def use(self, span: Span) -> Any:
        """Return a context manager under which ``span`` is the current one; it does not end it."""
        return self._trace.use_span(span, end_on_exit=False, record_exception=False, set_status_on_exception=False)


def attributes(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return facts as attributes of a span: what is None is left out."""
    return {f"{_PREFIX}{name}": value for name, value in facts.items() if value is not None}


def name_of(error: BaseException) -> str:
    """Return what an error is called: its code, or its class."""
    return error.code if isinstance(error, RuntimePersistError) else type(error).__qualname__
