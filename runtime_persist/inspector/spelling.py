"""Durations and moments of the database clock, in words."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

_SECOND: Final = 1_000_000
_SHORT: Final = 10 * _SECOND
_UNITS: Final = ((86_400 * _SECOND, "d"), (3_600 * _SECOND, "h"), (60 * _SECOND, "min"), (_SECOND, "s"))


def spelled(us: int) -> str:
    """Return a duration of microseconds, in two units at most."""
    us = abs(us)
    if us < _SHORT:
        return f"{us / _SECOND:.1f} s"
    first = next(position for position, (size, _) in enumerate(_UNITS) if us >= size)
    said = []
    for size, name in _UNITS[first : first + 2]:
        count, us = divmod(us, size)
        if count:
            said.append(f"{count} {name}")
    return " ".join(said)


def ago(us: int | None, now_us: int) -> str:
    """Return how long ago a moment was, or in how long it will be."""
    if us is None:
        return "never"
    return f"in {spelled(us - now_us)}" if us > now_us else f"{spelled(now_us - us)} ago"


def at(us: int) -> str:
    """Return a moment of the database's clock in UTC, to the second."""
    return datetime.fromtimestamp(us / _SECOND, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
