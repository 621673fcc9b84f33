"""The operation journal: what nodes and tools call, so that nothing outside happens twice unnoticed."""

from __future__ import annotations

from runtime_persist.journal.operation import OnUnknown, operation

__all__ = ["OnUnknown", "operation"]
