"""LangGraph: the checkpoint saver and graphs bound to runs."""

from __future__ import annotations

from runtime_persist.adapters.workflow.bound import BoundGraph
from runtime_persist.adapters.workflow.saver import WorkflowCheckpointAdapter

__all__ = ["BoundGraph", "WorkflowCheckpointAdapter"]
