"""What adapters and worker share: the opened database, owned runs, heartbeats, flows for sync and async."""

from __future__ import annotations

from runtime_persist.engine.core import Engine
from runtime_persist.engine.flow import Flow, arun, run
from runtime_persist.engine.owned import OwnedRun

__all__ = ["Engine", "Flow", "OwnedRun", "arun", "run"]
