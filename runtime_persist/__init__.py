"""runtime_persist makes LangGraph agents survive crashes, and proves it.

Three ways to use it: as a checkpointer (:class:`runtime_persist.adapters.workflow.WorkflowCheckpointAdapter`), as
owned runs (:meth:`Runtime.bind`), or with workers on many machines (``runtime.runs`` and ``runtime-persist worker``).
"""

from __future__ import annotations

from runtime_persist.engine.workspaces import current_workspace
from runtime_persist.journal import DidNotHappen, Happened, StillUnknown, Try, operation, step, workspace
from runtime_persist.model.budgets import Budget, Ticket, Usage
from runtime_persist.model.questions import Question
from runtime_persist.model.retry import RetryPolicy
from runtime_persist.model.workspace import Workspace
from runtime_persist.runtime import Run, Runtime

__all__ = [
    "Budget",
    "DidNotHappen",
    "Happened",
    "Question",
    "RetryPolicy",
    "Run",
    "Runtime",
    "StillUnknown",
    "Ticket",
    "Try",
    "Usage",
    "Workspace",
    "current_workspace",
    "operation",
    "step",
    "workspace",
]
__version__ = "0.1.0"
