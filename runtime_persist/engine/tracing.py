"""The span of a run's start: its context is stored with the run, and every attempt goes on from there."""

from __future__ import annotations

import dataclasses
from contextlib import contextmanager
from typing import TYPE_CHECKING

from runtime_persist.telemetry import active

if TYPE_CHECKING:
    from collections.abc import Iterator

    from runtime_persist.commands.parts.run_request import RunRequest


@contextmanager
def starting(asked: RunRequest) -> Iterator[RunRequest]:
    """Span the start of a run; gives the request with the trace context in it (without telemetry: as it is)."""
    telemetry = active()
    if telemetry is None:
        yield asked
        return
    tracing = telemetry.tracing
    span = tracing.start("run start", "PRODUCER", graph=asked.graph, run_id=asked.run_id)
    try:
        yield dataclasses.replace(asked, traceparent=tracing.carried(span))
    except BaseException as error:
        tracing.end(span, error)
        raise
    tracing.end(span, None)
