"""Forms that fit the terminal: ids and commands are copied by people, so a narrow one must not break them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class ByWidth:
    """A table where the terminal has ``columns``, else something narrower."""

    wide: RenderableType
    narrow: RenderableType
    columns: int

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Give the form that fits."""
        yield self.wide if options.max_width >= self.columns else self.narrow


@dataclass(frozen=True, slots=True)
class Whole:
    """A line that is never broken: what is longer than the terminal is broken by that, and copied as one line."""

    text: Text

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Give the line as it is."""
        yield from self.text.render(console, end="\n")


def pairs(*rows: tuple[str, RenderableType]) -> Table:
    """Return names and what belongs to them, one under the other."""
    made = Table.grid(padding=(0, 2))
    made.add_column(style="dim", no_wrap=True)
    made.add_column(overflow="fold")
    for name, what in rows:
        made.add_row(name, what)
    return made


def stacked(title: str, items: Sequence[tuple[Text, str]]) -> Group:
    """Return a list whose items are a line each, and what belongs to it below."""
    parts: list[RenderableType] = [Text(title, style="bold")]
    for head, more in items:
        parts += [Whole(head), Padding(Text(more, style="dim", overflow="fold"), (0, 0, 0, 2))]
    return Group(*parts)
