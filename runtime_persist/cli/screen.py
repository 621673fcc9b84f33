"""Where answers are printed: as wide as the terminal; as wide as needed, and without colours, when there is none."""

from __future__ import annotations

import os
import sys

from rich.console import Console, RenderableType

_PIPED_COLUMNS = 250


def console(*, stderr: bool = False) -> Console:
    """Return the console of stdout, or of stderr."""
    stream = sys.stderr if stderr else sys.stdout
    piped = not stream.isatty() and "COLUMNS" not in os.environ
    return Console(stderr=stderr, width=_PIPED_COLUMNS if piped else None)


def show(what: RenderableType) -> None:
    """Print an answer; where a terminal is too narrow it is folded, or has fewer columns: nothing is cut off."""
    console().print(what, crop=False)
