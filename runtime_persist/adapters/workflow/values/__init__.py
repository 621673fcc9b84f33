"""How values are stored: equal when they come back, or refused before anything is written."""

from __future__ import annotations

from runtime_persist.adapters.workflow.values.choice import (
    allowing,
    error_text,
    for_graph,
    metadata_names,
    serializer_for,
    serializer_of,
)
from runtime_persist.adapters.workflow.values.raw import RawObject, RawSerializer, raw_view
from runtime_persist.adapters.workflow.values.registry import register_type, register_upgrade
from runtime_persist.adapters.workflow.values.sealed import AcceptPlainRows, RequireCipher
from runtime_persist.adapters.workflow.values.serializer import ValueSerializer

__all__ = [
    "AcceptPlainRows",
    "RawObject",
    "RawSerializer",
    "RequireCipher",
    "ValueSerializer",
    "allowing",
    "error_text",
    "for_graph",
    "metadata_names",
    "raw_view",
    "register_type",
    "register_upgrade",
    "serializer_for",
    "serializer_of",
]
