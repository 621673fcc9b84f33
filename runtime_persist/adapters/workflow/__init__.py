"""LangGraph: the checkpoint saver and graphs bound to runs."""

from __future__ import annotations

from runtime_persist.adapters.workflow.bound import BoundGraph
from runtime_persist.adapters.workflow.saver import WorkflowCheckpointAdapter
from runtime_persist.adapters.workflow.values import (
    AcceptPlainRows,
    RawObject,
    RawSerializer,
    RequireCipher,
    ValueSerializer,
    register_type,
    register_upgrade,
)

__all__ = [
    "AcceptPlainRows",
    "BoundGraph",
    "RawObject",
    "RawSerializer",
    "RequireCipher",
    "ValueSerializer",
    "WorkflowCheckpointAdapter",
    "register_type",
    "register_upgrade",
]
