"""The command line: ``runtime-persist``."""

from __future__ import annotations

from runtime_persist.cli.main import main

__all__ = ["main"]
