"""What differs between two checkpoints, channel by channel; and values as lines of text. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass
from difflib import unified_diff
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from runtime_persist.inspector.plain import plain

if TYPE_CHECKING:
    from collections.abc import Mapping

    from runtime_persist.model.payload import PayloadRef

VALUE_BYTES_MAX: Final = 65_536
"""Larger values are not loaded for a page."""
CHANNELS_MAX: Final = 40
"""Channels whose values are loaded for a comparison; of the others only the sizes are said."""
_LINES_MAX: Final = 400
_SHOWN_LINES_MAX: Final = 120
_LINE_CHARS: Final = 400
_CONTEXT: Final = 2


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a comparison: ``sign`` is ``+``, ``-``, `` `` or ``@``."""

    sign: str
    text: str


@dataclass(frozen=True, slots=True)
class Change:
    """A channel that differs.

    Attributes:
        channel: its name.
        kind: ``added``, ``removed`` or ``changed``.
        before: its bytes in the first checkpoint (None: it has no value there).
        after: its bytes in the second.
        lines: what differs in its value.
        note: why there are no lines, or not all ("": there are).

    """

    channel: str
    kind: str
    before: int | None
    after: int | None
    lines: list[Line]
    note: str


def differing(before: Mapping[str, PayloadRef], after: Mapping[str, PayloadRef]) -> list[str]:
    """Return the channels that differ, by name."""
    return sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))


def wanted(before: Mapping[str, PayloadRef], after: Mapping[str, PayloadRef]) -> dict[PayloadRef, str]:
    """Return the values that a comparison loads, and in which channel each is."""
    found: dict[PayloadRef, str] = {}
    for channel in differing(before, after)[:CHANNELS_MAX]:
        sides = [refs[channel] for refs in (before, after) if channel in refs]
        if all(ref.size <= VALUE_BYTES_MAX for ref in sides):
            found |= dict.fromkeys(sides, channel)
    return found


def compared(
    before: Mapping[str, PayloadRef], after: Mapping[str, PayloadRef], values: Mapping[PayloadRef, str]
) -> list[Change]:
    """Return what differs.

    Args:
        before: the channels of one checkpoint.
        after: the channels of the other.
        values: texts of the values that were loaded.

    """
    made = []
    for channel in differing(before, after):
        one, other = before.get(channel), after.get(channel)
        kind = "added" if one is None else "removed" if other is None else "changed"
        lines, note = _lines(one, other, values)
        sizes = [None if ref is None else ref.size for ref in (one, other)]
        made.append(Change(channel, kind, sizes[0], sizes[1], lines, note))
    return made


def _lines(
    one: PayloadRef | None, other: PayloadRef | None, values: Mapping[PayloadRef, str]
) -> tuple[list[Line], str]:
    texts = ["" if ref is None else values.get(ref) for ref in (one, other)]
    if texts[0] is None or texts[1] is None:
        return [], "too large to be loaded for a page"
    ours, theirs = texts[0].splitlines(), texts[1].splitlines()
    ours, theirs, cut = _without_common(ours, theirs)
    found = unified_diff(ours[:_LINES_MAX], theirs[:_LINES_MAX], n=_CONTEXT, lineterm="")
    signed = [line for line in islice(found, 2, _SHOWN_LINES_MAX + 3) if not line.startswith("@@")]
    more = len(signed) > _SHOWN_LINES_MAX or max(len(ours), len(theirs)) > _LINES_MAX
    lines = [Line("@", f"… {cut} equal lines")] if cut else []
    lines += [Line(line[0], cut_line(line[1:])) for line in signed[:_SHOWN_LINES_MAX]]
    note = "" if lines or one == other else "the same for people; the bytes differ"
    return lines, "only the first lines are shown" if more else note


def _without_common(ours: list[str], theirs: list[str]) -> tuple[list[str], list[str], int]:
    """Take off the lines that both begin with, but the last few: a list that grew differs only at its end."""
    same = 0
    for one, other in zip(ours, theirs, strict=False):
        if one != other:
            break
        same += 1
    cut = max(same - _CONTEXT, 0)
    return ours[cut:], theirs[cut:], cut


def said(value: Any) -> str:
    """Return a value as lines of JSON; secrets are stars, bytes are their number."""
    return json.dumps(plain(value), indent=2, ensure_ascii=False, default=str)


def shortened(value: Any, lines_max: int = _SHOWN_LINES_MAX) -> str:
    """Return a value as lines of JSON, the first of them."""
    lines = said(value).splitlines()
    more = [f"… {len(lines) - lines_max:,} more lines"] if len(lines) > lines_max else []
    return "\n".join([*map(cut_line, lines[:lines_max]), *more])


def cut_line(text: str) -> str:
    """Return a line that fits a page."""
    return text if len(text) <= _LINE_CHARS else f"{text[: _LINE_CHARS - 1]}… ({len(text):,} characters)"
