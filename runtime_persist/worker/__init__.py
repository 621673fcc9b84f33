"""Workers: claim runs, write the start fence, execute the graph, take over what others left."""

from __future__ import annotations

from runtime_persist.worker.loop import Worker
from runtime_persist.worker.registry import RegisteredGraph, load_attribute, load_registry

__all__ = ["RegisteredGraph", "Worker", "load_attribute", "load_registry"]
