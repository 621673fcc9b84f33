"""The progress bar of commands that take a while; on stderr, so that stdout holds the answer only."""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


def bar() -> Progress:
    """Return a bar that shows what is done of how much; it begins and ends as a context."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=Console(stderr=True))
