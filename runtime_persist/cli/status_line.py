"""What a worker shows while it works: a line for each thing that happens, and on a terminal where it stands now."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING, Any, Self

from rich.live import Live
from rich.text import Text

from runtime_persist.inspector.spelling import spelled

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    from rich.console import Console

_REFRESHES_PER_SECOND = 2
_WIDTH_OF_WHAT = 9
_DRAINED = "GraphDrained"
"""What stops a run whose worker was told to end, at its next step; it is queued again."""


def _tells(name: str, value: Any) -> bool:
    """Return whether a fact is worth a place in a line: what is as always is not."""
    return bool(value) and (name, value) != ("control", "open") and name != "attempt_id"


class StatusLine:
    """Prints what a worker reports; on a terminal the last line says where it stands.

    Attributes:
        draining: the worker was told to end.

    """

    def __init__(self, console: Console, worker_id: str, slots: int) -> None:
        """Show it on ``console``; a context manager: the line is there inside of it."""
        self._console = console
        self._worker_id = worker_id
        self._slots = slots
        self._began = time.monotonic()
        self._counts: Counter[str] = Counter()
        self._working: set[str] = set()
        self._last_code: str | None = None
        self.draining = False
        self._live = (
            Live(get_renderable=self.line, console=console, refresh_per_second=_REFRESHES_PER_SECOND, transient=True)
            if console.is_terminal
            else None
        )

    def told(self, what: str, facts: Mapping[str, Any]) -> None:
        """Print what happened, and count it."""
        run_id = str(facts.get("run_id", ""))
        drained = what == "stopped" and facts.get("code") == _DRAINED
        self._counts["queued again" if drained else what] += 1
        if what == "claimed":
            self._working.add(run_id)
            self._counts["taken over"] += bool(facts.get("takeover"))
        elif what in {"finished", "stopped", "abandoned", "blocked"}:
            self._working.discard(run_id)
        if not drained:
            self._last_code = facts.get("code") or self._last_code
        shown = "  ".join(f"{name}={value}" for name, value in facts.items() if _tells(name, value))
        self._console.print(Text().append(f"{what:{_WIDTH_OF_WHAT}}", style="bold").append(shown), soft_wrap=True)

    def line(self) -> Text:
        """Return where the worker stands; what does not fit into the terminal's width is left out."""
        counts = self._counts
        state, style = ("draining", "yellow") if self.draining else ("working", "green")
        parts = [
            f"{len(self._working)}/{self._slots} slots",
            f"{counts['finished']} finished",
            *([f"{counts['stopped']} stopped (last: {self._last_code})"] if counts["stopped"] else []),
            *(f"{counts[name]} {name}" for name in ("queued again", "taken over", "blocked") if counts[name]),
            *([f"database: {self._last_code}"] if counts["waiting"] and not counts["stopped"] else []),
            f"up {spelled(int((time.monotonic() - self._began) * 1_000_000))}",
            self._worker_id,
        ]
        text = Text(no_wrap=True, overflow="ellipsis")
        return text.append("● ", style=style).append(state, style=f"bold {style}").append("  " + "  ".join(parts))

    def __enter__(self) -> Self:
        """Show the line."""
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Take it away."""
        if self._live is not None:
            self._live.stop()
