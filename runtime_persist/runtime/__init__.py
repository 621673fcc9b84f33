"""The public facade: open a database, bind graphs, start and control runs."""

from __future__ import annotations

from runtime_persist.runtime.facade import Runtime
from runtime_persist.runtime.runs import Run, Runs

__all__ = ["Run", "Runs", "Runtime"]
