"""Texts of other people's making, as every database can hold them."""

from __future__ import annotations

import re
from typing import Final

# Bounded, and with nothing in front of the word: a long text must not be looked at again from each of its places.
_NAMED = r"(?:key|token|secret|passw(?:or)?d|authorization|credential)[\w.-]{0,64}"
SHOWN_INSTEAD: Final = "[hidden]"
"""What stands where a hidden value was said."""

_SECRETS: Final = (
    (re.compile(rf"(?i)({_NAMED}[\"']?\s{{0,8}}[=:]\s{{0,8}}[\"']?)(?:bearer\s+|basic\s+)?[^\s\"',;&}})]+"), r"\1…"),
    (re.compile(r"(?i)\b(bearer|basic)\s+[\w.~+/=-]{8,}"), r"\1 …"),
    (re.compile(r"(://[^\s/:@]+:)[^\s/@]+@"), r"\1…@"),
)


def redacted(text: str) -> str:
    """Return a text without what stands behind the name of a secret (``api_key=…``), in a header or in a URL."""
    for pattern, instead in _SECRETS:
        text = pattern.sub(instead, text)
    return text


def storable(text: str, chars_max: int) -> str:
    """Return a text without what PostgreSQL has no form for (NUL, half of an emoji: written out), cut to a length.

    It is for texts that people read. What must come back as it was is a value, and goes through the serializer.
    """
    cut = text[:chars_max].replace("\0", "\\0").encode("utf-8", "backslashreplace").decode()
    return cut if len(text) <= chars_max and len(cut) <= chars_max else cut[: chars_max - 1] + "…"


def said_by(error: BaseException) -> str:
    """Return what an exception says; its type when it cannot even say that."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001 (the exception's own code)
        return f"({type(error).__qualname__} has no text)"
