"""Telemetry: what is measured and traced, through the OpenTelemetry API and nothing else.

Whether there is any is decided once for a process: without ``opentelemetry-api`` there is none, and nothing of this
is on anybody's way. With the API and no SDK its calls do nothing. Everything is recorded after the commit.
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Protocol

from runtime_persist.errors import IllegalTransition, ReportIgnored, RuntimePersistError
from runtime_persist.model.states import FINAL_RUN, AttemptCause, RunStatus
from runtime_persist.telemetry import metrics
from runtime_persist.telemetry.tracing import Tracing

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from concurrent.futures import Future

    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import Span, TracerProvider

    from runtime_persist.telemetry.metrics import Metric

_SCOPE: Final = "runtime_persist"
_OPEN: Final = tuple(status.value for status in RunStatus if status not in FINAL_RUN)


class Fact(Protocol):
    """An event as its command told it."""

    @property
    def type(self) -> str:
        """Return its ``aggregate.past_tense``."""

    @property
    def payload(self) -> Mapping[str, Any]:
        """Return its few fields."""


class Answer(Protocol):
    """What a committed command answers with."""

    @property
    def replayed(self) -> bool:
        """Return whether it had been committed before."""

    @property
    def changes(self) -> Sequence[tuple[str | None, Sequence[Fact]]]:
        """Return the runs it changed: status before (None: a new run), and their events."""


class Telemetry:
    """Instruments and spans of one pair of providers.

    Attributes:
        tracing: the spans.

    """

    def __init__(
        self,
        meter_provider: MeterProvider | None = None,
        tracer_provider: TracerProvider | None = None,
        *,
        command_spans: bool = False,
    ) -> None:
        """Use the providers (None: the process's, also when they are set later).

        Args:
            meter_provider: of the metrics.
            tracer_provider: of the spans.
            command_spans: also make a span of every command that is committed: there are many.

        """
        from opentelemetry import metrics as api
        from opentelemetry import trace

        self._command_spans = command_spans
        self._meter = api.get_meter(_SCOPE, meter_provider=meter_provider)
        self._made: dict[str, Any] = {metric.name: self._instrument(metric) for metric in metrics.METRICS}
        self._durations = self._made[metrics.COMMAND_DURATION.name]
        self._graphs: set[str] = set()
        self.tracing = Tracing(trace.get_tracer(_SCOPE, tracer_provider=tracer_provider))

    @property
    def heard(self) -> bool:
        """Return whether somebody reads what is measured: a provider was given here, or to the process by now.

        Whatever is done for every command asks first. An instrument of the API stands for the real one that it has not
        got yet; if it does not say so any more, what nobody reads is measured.
        """
        return getattr(self._durations, "_real_instrument", self) is not None or self._command_spans

    def _instrument(self, metric: Metric) -> Any:
        said = {"unit": metric.unit, "description": metric.meaning}
        if metric.kind == "counter":
            return self._meter.create_counter(metric.name, **said)
        if metric.kind == "gauge":
            return self._meter.create_gauge(metric.name, **said)
        return self._meter.create_histogram(metric.name, **said, explicit_bucket_boundaries_advisory=metric.bounds)

    def _count(self, metric: Metric, *labels: str) -> None:
        self._made[metric.name].add(1, dict(zip(metric.labels, labels, strict=True)))

    # --- commands -----------------------------------------------------------------------------------------------------

    def sent(self, command: str) -> Sent:
        """Note that a command is handed over; its :meth:`Sent.answered` goes to the future."""
        span = self.tracing.command(command) if self._command_spans else None
        return Sent(self, command, span)

    def answered(self, command: str, seconds: float, answer: Answer | None, error: BaseException | None) -> str:
        """Note how a command ended, and return that: ``committed``, ``replayed``, or the code of its error."""
        result = "committed" if answer is not None else code_of(error)
        if answer is not None and answer.replayed:
            result = "replayed"
        labels = dict(zip(metrics.COMMAND_DURATION.labels, (command, result), strict=True))
        self._durations.record(seconds, labels)
        if answer is not None:
            for before, facts in answer.changes:
                self._changed(before, facts)
        elif isinstance(error, RuntimePersistError) and error.kind == "conflict":
            self._count(metrics.RUN_TRANSITION_CONFLICT, command)
            if isinstance(error, IllegalTransition):
                self._refused(error)
            if isinstance(error, ReportIgnored):
                self._count(metrics.ATTEMPT_LATE_CALLBACK, str(error.details["reason"]))
        return result

    def _refused(self, error: IllegalTransition) -> None:
        """Count a transition that a run's state does not allow (of attempts only what they do to their run is)."""
        old = error.details.get("old", error.details.get("status"))
        new = error.details.get("new", "unknown")
        if old in set(RunStatus):
            self._count(metrics.RUN_TRANSITION, old, new, "refused")

    def _changed(self, before: str | None, facts: Iterable[Fact]) -> None:
        status = before or "none"
        for fact in facts:
            self._count(metrics.RUN_EVENT_APPEND, fact.type)
            new = fact.type.removeprefix("run.")
            if new != fact.type and new in set(RunStatus):
                self._count(metrics.RUN_TRANSITION, status, new, "committed")
                status = new
            if fact.type in metrics.RECONCILED:
                self._count(metrics.RUN_RECONCILE, metrics.RECONCILED[fact.type])
            if fact.type == "attempt.claimed" and fact.payload.get("cause") == AttemptCause.TAKEOVER:
                self._count(metrics.RUN_RECONCILE, "taken_over")
            if fact.type == "attempt.late_callback_ignored":
                self._count(metrics.ATTEMPT_LATE_CALLBACK, str(fact.payload["reason"]))

    def retried(self, command: str, error: RuntimePersistError) -> None:
        """Note that a command is sent again."""
        self._count(metrics.COMMAND_RETRY, command, error.code)

    def batch(self, database: str, commands: int) -> None:
        """Note how many commands one transaction committed."""
        labels = dict(zip(metrics.COMMIT_BATCH.labels, (database,), strict=True))
        self._made[metrics.COMMIT_BATCH.name].record(commands, labels)

    # --- runs ---------------------------------------------------------------------------------------------------------

    def lease_lost(self, error: RuntimePersistError) -> None:
        """Note that a lease was lost by whoever worked under it."""
        self._count(metrics.LEASE_LOST, error.code)

    def looked_at(self, found: Iterable[Mapping[str, Any]]) -> None:
        """Note the open runs: rows of ``status, graph, runs, oldest_us, now_us``."""
        ages = dict.fromkeys(_OPEN, 0)
        waiting = dict.fromkeys(self._graphs, 0)
        for row in found:
            ages[row["status"]] = max(ages[row["status"]], row["now_us"] - row["oldest_us"])
            waits = row["status"] in {RunStatus.QUEUED, RunStatus.RETRY_WAIT}
            waiting[row["graph"]] = waiting.get(row["graph"], 0) + (row["runs"] if waits else 0)
        self._graphs |= waiting.keys()
        for status, age_us in ages.items():
            self._made[metrics.RUN_NON_TERMINAL_AGE.name].set(age_us / 1_000_000, {"status": status})
        for graph, runs in waiting.items():
            self._made[metrics.RUN_QUEUE_DEPTH.name].set(runs, {"graph": graph})


class Sent:
    """A command on its way."""

    def __init__(self, telemetry: Telemetry, command: str, span: Span | None) -> None:
        """Begin now."""
        self._telemetry = telemetry
        self._command = command
        self._span = span
        self._begun = time.perf_counter()

    def answered(self, future: Future[Any]) -> None:
        """Note how it ended; for ``Future.add_done_callback``."""
        seconds = time.perf_counter() - self._begun
        error = None if future.cancelled() else future.exception()
        answer = None if future.cancelled() or error is not None else future.result()
        result = self._telemetry.answered(self._command, seconds, answer, error)
        if self._span is not None:
            self._telemetry.tracing.end(self._span, error, **{"runtime_persist.result": result})


def code_of(error: BaseException | None) -> str:
    """Return an error's code; of what is none of ours only that, because other people's classes have no bound."""
    if isinstance(error, RuntimePersistError):
        return error.code
    return "CANCELLED" if error is None else "OTHER"


class _Process:
    """The process's telemetry: made when a database is opened first, or by :func:`configure`."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.decided = False
        self.current: Telemetry | None = None


_process: Final = _Process()


def active() -> Telemetry | None:
    """Return the process's telemetry, None when ``opentelemetry-api`` is not installed."""
    if not _process.decided:
        with _process.lock:
            if not _process.decided:
                with suppress(ModuleNotFoundError):
                    _process.current = Telemetry()
                _process.decided = True
    return _process.current


def configure(
    *,
    enabled: bool = True,
    meter_provider: MeterProvider | None = None,
    tracer_provider: TracerProvider | None = None,
    command_spans: bool = False,
) -> None:
    """Choose what the databases that this process opens from now on tell OpenTelemetry.

    Nothing has to be configured: metrics and spans go to the providers that the process has set.

    Args:
        enabled: False: nothing is told.
        meter_provider: of the metrics (None: the process's).
        tracer_provider: of the spans (None: the process's).
        command_spans: also make a span of every command that is committed: there are many.

    Raises:
        ModuleNotFoundError: ``opentelemetry-api`` is not installed: install runtime-persist[otel].

    """
    made = Telemetry(meter_provider, tracer_provider, command_spans=command_spans) if enabled else None
    with _process.lock:
        _process.current, _process.decided = made, True
