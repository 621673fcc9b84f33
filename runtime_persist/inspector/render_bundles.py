"""Files of bundles in the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from runtime_persist.inspector.render import moment, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runtime_persist.inspector.bundles import Verified
    from runtime_persist.inspector.bundles.differ import Difference
    from runtime_persist.inspector.bundles.importing import Imported


def verified_table(found: Verified) -> Table:
    """Return what was found of a file that is as it was written."""
    made = Table(box=None, show_header=False, pad_edge=False)
    made.add_column(style="dim", no_wrap=True)
    made.add_column(overflow="fold")
    made.add_row("verified", Text(found.proves, style="green"))
    made.add_row("bundle", found.bundle)
    made.add_row("run", f"{found.run_id}, space {found.space}")
    made.add_row("read", moment(found.read_us))
    secrets = "stars instead of secrets" if found.redacted else Text("with secrets", style="yellow")
    content = f"{found.content_bytes:,} bytes" if found.content == "complete" else "none"
    made.add_row("holds", f"{found.rows:,} rows, content: {content}")
    made.add_row("values", secrets)
    return made


def imported_table(found: Imported) -> Table:
    """Return where a bundle is now, and how it is looked at."""
    made = Table(box=None, show_header=False, pad_edge=False)
    made.add_column(style="dim", no_wrap=True)
    made.add_column(overflow="fold")
    made.add_row("space", Text(found.space, style="bold"))
    made.add_row("", "imported" if found.new else "it was there already: nothing was written")
    made.add_row("run", f"{found.run_id}, thread {found.thread_id}")
    made.add_row("as of", moment(found.as_of_us))
    made.add_row("holds", f"{found.rows:,} rows" + (", stars instead of secrets" if found.redacted else ""))
    made.add_row("look", f"runtime-persist run why {found.run_id} --space {found.space}")
    return made


def differences_table(found: Sequence[Difference]) -> Table:
    """Return what differs between two bundles."""
    made = table(f"differences ({len(found)})", "part", "row", "what", "column", "before", "after")
    for one in found:
        made.add_row(one.part, one.key, one.what, one.column or "", one.before or "–", one.after or "–")
    return made
