"""The fixtures of this suite: OpenTelemetry's own SDK, keeping in memory what it is told."""

import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from runtime_persist import telemetry
from runtime_persist.telemetry import telemetry as process
from runtime_persist.worker import Worker
from tests.fixtures.fix_engine import FILE, POSTGRES
from tests.support.plugin import *  # noqa: F403


class Told:
    """What was told to OpenTelemetry."""

    def __init__(self, **options: Any) -> None:
        self._reader = InMemoryMetricReader()
        self._exporter = InMemorySpanExporter()
        self.tracers = TracerProvider()
        self.tracers.add_span_processor(SimpleSpanProcessor(self._exporter))
        meters = MeterProvider([self._reader])
        telemetry.configure(meter_provider=meters, tracer_provider=self.tracers, **options)

    def points(self, name: str) -> dict[tuple[str, ...], Any]:
        """A metric's points by the values of its labels, in the order in which it declares them."""
        found: dict[tuple[str, ...], Any] = {}
        data = self._reader.get_metrics_data()
        for scope in data.resource_metrics[0].scope_metrics if data else []:
            for metric in scope.metrics:
                if metric.name == name:
                    found |= {tuple(point.attributes.values()): point for point in metric.data.data_points}
        return found

    def counts(self, name: str) -> Counter[tuple[str, ...]]:
        """A counter by its labels."""
        return Counter({labels: point.value for labels, point in self.points(name).items()})

    def names(self) -> dict[str, dict[str, set[str]]]:
        """Every metric with the values of its labels."""
        found: dict[str, dict[str, set[str]]] = {}
        for scope in self._reader.get_metrics_data().resource_metrics[0].scope_metrics:
            for metric in scope.metrics:
                labels = found.setdefault(metric.name, {})
                for point in metric.data.data_points:
                    for label, value in point.attributes.items():
                        labels.setdefault(label, set()).add(value)
        return found

    def spans(self, name: str) -> list[ReadableSpan]:
        """The finished spans of this name, in the order in which they began."""
        found = [span for span in self._exporter.get_finished_spans() if span.name == name]
        return sorted(found, key=lambda span: span.start_time)


@pytest.fixture
def told(request: pytest.FixtureRequest) -> Iterator[Told]:
    """OpenTelemetry in memory, for the databases that are opened from here on."""
    before = process._process.current, process._process.decided
    yield Told(**getattr(request, "param", {}))
    process._process.current, process._process.decided = before


@pytest.fixture
def shared_url(request: pytest.FixtureRequest) -> str:
    """A SQLite file: what is told does not depend on the database. Tests of what might ask for the other one too."""
    postgres = getattr(request, "param", FILE) == POSTGRES
    found: str = request.getfixturevalue("postgres_url" if postgres else "sqlite_url")
    return found


@pytest.fixture
def runtime(told, open_runtime):
    """A runtime that tells OpenTelemetry what it does."""
    return open_runtime()


@pytest.fixture
def works(runtime):
    """Work until nothing is left, on a thread of its own."""

    def until_idle(graphs, **options):
        worker = Worker(runtime, graphs, poll_seconds=0.01, report=lambda what, facts: None, **options)
        thread = threading.Thread(target=worker.run, kwargs={"until_idle": True})
        thread.start()
        thread.join()

    return until_idle
