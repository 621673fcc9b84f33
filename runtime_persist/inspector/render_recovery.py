"""A recovery plan in the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from runtime_persist.inspector.layout import Whole, pairs
from runtime_persist.inspector.render import status
from runtime_persist.recovery.plan import HASH_COVERS

if TYPE_CHECKING:
    from runtime_persist.recovery import PlanItem, RecoveryPlan
    from runtime_persist.runtime.recovering import Recovered

_COLOURS = {"none": "green", "at most once": "cyan", "may be repeated": "yellow", "asks": "magenta", "ends": "red"}


def plan_tree(plan: RecoveryPlan) -> RenderableType:
    """Return a whole plan: each open thing with what is done about it, and how to have it done."""
    parts: list[RenderableType] = [
        Whole(Text.assemble(status(plan.shown), f"  run {plan.run_id}, graph {plan.graph}")),
        Text(""),
    ]
    for item in plan.items:
        parts += [*_item(item), Text("")]
    parts += [
        Whole(Text(f"hash  {plan.hash}", style="bold")),
        Text(HASH_COVERS, style="dim"),
        Text(""),
        Whole(Text(f"runtime-persist recover apply {plan.run_id} --plan {plan.hash}")),
    ]
    return Group(*parts)


def _item(item: PlanItem) -> list[RenderableType]:
    head = Text.assemble((item.kind, "bold"), f"  {item.name}".rstrip(), "  ", (item.subject, "dim"))
    rests_on = ", ".join(f"{name} {value}" for name, value in item.evidence.items() if value is not None)
    said = pairs(
        ("situation", Text(item.situation)),
        ("rests on", Text(f"{rests_on} ({item.rule})")),
        ("happened", Text(item.happened)),
        ("action", Text(item.action, style="bold")),
        ("because", Text(item.reason)),
        ("outside", Text(item.outside, style=_COLOURS[item.outside])),
    )
    return [Whole(head), Padding(said, (0, 0, 0, 2))]


def recovered_line(found: Recovered) -> RenderableType:
    """Return what came of a recovery."""
    did = ", ".join(word.replace("_", " ") for word in found.did) or "nothing was to be done"
    return Whole(Text.assemble(status(found.status), f"  run {found.run_id}, epoch {found.epoch}: {did}"))
