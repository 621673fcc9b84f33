"""What real processes run for the tests of traces."""

import signal
from typing import Any

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from runtime_persist import Runtime, telemetry
from runtime_persist.worker import Worker
from tests.support.graphs import chain
from tests.support.processes import Word


def traced_worker(word: Word, url: str) -> list[dict[str, Any]]:
    """Work on graph ``g`` until SIGTERM; its node says that it runs, and waits for the word. Return its attempts."""
    kept = InMemorySpanExporter()
    tracers = TracerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(kept))
    telemetry.configure(tracer_provider=tracers)

    def node(_: Any) -> Any:
        word.say("in node")
        return {"log": [word.wait()]}

    with Runtime.open(url) as runtime:
        worker = Worker(runtime, {"g": chain({"node": node})}, poll_seconds=0.02)
        signal.signal(signal.SIGTERM, lambda *_: worker.stop())
        worker.run()
    return [
        {
            "trace_id": span.context.trace_id,
            "parent_id": span.parent.span_id,
            "epoch": span.attributes["runtime_persist.epoch"],
            "run_status": span.attributes["runtime_persist.run_status"],
        }
        for span in kept.get_finished_spans()
        if span.name == "run attempt" and span.parent is not None and span.attributes is not None
    ]
