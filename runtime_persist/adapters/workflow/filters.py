"""The one rule for metadata filters, on both databases.

A filter matches when every key of it is present in the metadata with an equal value. Keys are literal (a dot or a
quote in them means nothing) and never reach SQL. Values are equal as in JSON: numbers by value (1 equals 1.0), but
a bool is no number; lists and tuples item by item; dicts key by key, in any order. ``None`` matches a key that is
present with None, not one that is absent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def matches(metadata: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Return whether metadata has every key of ``wanted`` with an equal value."""
    return all(key in metadata and equal(metadata[key], value) for key, value in wanted.items())


def equal(one: Any, other: Any) -> bool:
    """Return whether two values are equal as in JSON."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(equal(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(equal, one, other))
    return bool(one == other)
