"""runtime_persist makes LangGraph agents survive crashes, and proves it.

Three ways to use it: as a checkpointer (:class:`runtime_persist.adapters.workflow.WorkflowCheckpointAdapter`), as
owned runs (:meth:`Runtime.bind`), or with workers on many machines (``runtime.runs`` and ``runtime-persist worker``).
"""

from __future__ import annotations

from runtime_persist.journal import operation
from runtime_persist.model.retry import RetryPolicy
from runtime_persist.runtime import Run, Runtime

__all__ = ["RetryPolicy", "Run", "Runtime", "operation"]
__version__ = "0.1.0"
