"""The explanation of a run in the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from runtime_persist.inspector.layout import Whole, pairs
from runtime_persist.inspector.render import status

if TYPE_CHECKING:
    from runtime_persist.inspector.why import Why


def why(found: Why) -> RenderableType:
    """Return the explanation: what is the matter first, what helps last."""
    head = Text().append_text(status(found.shown)).append("  ").append(found.because)
    rows: list[tuple[str, RenderableType]] = [
        ("run", found.run_id),
        ("of", f"graph {found.graph}, thread {found.thread_id}"),
        ("proof", found.proof),
        ("lease", found.lease),
    ]
    rows += [("shown by" if not number else "", one) for number, one in enumerate(found.evidence)]
    if found.awaits:
        rows.append(("awaits", found.awaits))
    rows += [("pending" if not number else "", name) for number, name in enumerate(found.pending)]
    for number, one in enumerate(found.unknown):
        said = Text().append("? ", style="bold magenta").append(f"{one.what}\n").append(one.question, style="dim")
        rows.append(("unknown" if not number else "", said))
    for number, worker in enumerate(found.workers):
        mark, style = ("✓ ", "green") if worker.could else ("✗ ", "red")
        said = Text().append(mark, style=style).append(f"{worker.worker_id}: {worker.why}")
        rows.append(("workers" if not number else "", said))
    parts: list[RenderableType] = [head, Text(""), pairs(*rows)]
    for advice in found.do:
        parts += [Text(f"\n# {advice.purpose}", style="dim"), Whole(Text(f"runtime-persist {advice.command}"))]
    return Group(*parts)
