"""What real processes run. Imported by the fork server before any test: it opens nothing."""

from __future__ import annotations

import asyncpg  # noqa: F401 (the fork server shall have it)
from langgraph.graph import StateGraph  # noqa: F401

import runtime_persist  # noqa: F401
import runtime_persist.cli
import runtime_persist.worker  # noqa: F401
