"""Workers: claim runs, write the start fence, execute the graph, take over what others left."""

from __future__ import annotations

from runtime_persist.worker.loop import Worker
from runtime_persist.worker.recovering import recover
from runtime_persist.worker.registry import RegisteredGraph, load_attribute, load_registry
from runtime_persist.worker.runtimes import AttemptRuntime, Dispatch, Life, Sighting, SubprocessRuntime

__all__ = [
    "AttemptRuntime",
    "Dispatch",
    "Life",
    "RegisteredGraph",
    "Sighting",
    "SubprocessRuntime",
    "Worker",
    "load_attribute",
    "load_registry",
    "recover",
]
