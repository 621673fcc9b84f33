"""The whole table."""

from __future__ import annotations

from typing import Final

from runtime_persist.recovery import calls, others, runs

RULES: Final = {rule.name: rule for rule in (*runs.RULES, *others.RULES, *calls.RULES)}
"""Every row by its name."""
