"""The recovery dispatch table, as pure code: situation (from rows) -> action, reason, evidence, effect outside.

There is one table. Workers, the journal and the commands that claim ask it what to do; ``recover plan`` shows what it
says; ``recover apply`` has it done. Nothing here reads a database or a clock.
"""

from __future__ import annotations

from runtime_persist.recovery.found import Found
from runtime_persist.recovery.plan import PlanItem, RecoveryPlan, plan_of
from runtime_persist.recovery.rules import Act, Outside, Rule, Subject

__all__ = ["Act", "Found", "Outside", "PlanItem", "RecoveryPlan", "Rule", "Subject", "plan_of"]
