"""What a look at a database found, in the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from runtime_persist.inspector.layout import pairs
from runtime_persist.inspector.render import table

if TYPE_CHECKING:
    from runtime_persist.inspector.doctor import Report

_STYLES = {"damage": "bold red", "attention": "yellow"}


def doctor(found: Report) -> RenderableType:
    """Return what is wrong, and what was looked at."""
    rows: list[tuple[str, RenderableType]] = [
        ("space", found.space),
        ("database", f"{found.database.dialect} {found.database.version}, {found.database.url}"),
        ("schema", found.schema_version),
        ("clock", f"here {found.clock_difference_us / 1e6:+.3f} s from the database's"),
        ("looked", f"{len(found.looked_at)} kinds of fault"),
    ]
    if not found.findings:
        return Group(Text("nothing is wrong", style="green"), pairs(*rows))
    made = table(f"findings ({len(found.findings)})", "", "code", "what", "where", "do")
    for one in found.findings:
        made.add_row(Text(one.severity, style=_STYLES[one.severity]), one.code, one.what, one.where, one.do)
    return Group(pairs(*rows), Text(""), made)
