"""Ids: UUIDv7 as text for runs, attempts, commands; order never comes from them."""

from __future__ import annotations

import uuid_utils

from runtime_persist.errors import InvalidThreadId
from runtime_persist.model import limits
from runtime_persist.model.text import storable

NO_CHECKPOINT = "00000000-0000-0000-0000-000000000000"
"""Where a run begins that is to begin with an empty state in a thread that has one: smaller than every id."""


def new_id() -> str:
    """Return a new UUIDv7 as text."""
    return str(uuid_utils.uuid7())


def thread_id_of(value: object) -> str:
    """Return the thread id as text.

    ``str`` is taken as it is, ``int`` as decimal text (1 and "1" are one thread, as in LangGraph).

    Raises:
        InvalidThreadId: empty, ``None``, bytes or another type, a NUL or lone surrogate in it, or too long.

    """
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str):
        msg = (
            f"thread_id must be a text or an int, not {type(value).__name__}; pass config['configurable']['thread_id']"
        )
        raise InvalidThreadId(msg, thread_id=repr(value))
    if not value:
        msg = "thread_id is empty; pass a non-empty text in config['configurable']['thread_id']"
        raise InvalidThreadId(msg)
    if "\0" in value:
        msg = "thread_id contains a NUL character, which PostgreSQL cannot store"
        raise InvalidThreadId(msg, thread_id=repr(value))
    try:
        size = len(value.encode())
    except UnicodeEncodeError as error:
        msg = f"thread_id contains a lone surrogate at position {error.start}"
        raise InvalidThreadId(msg, thread_id=repr(value)) from error
    if size > limits.THREAD_ID_BYTES_MAX:
        msg = f"thread_id has {size} bytes of UTF-8; at most {limits.THREAD_ID_BYTES_MAX} are allowed"
        raise InvalidThreadId(msg)
    return value


def is_name(value: object) -> bool:
    """Return whether a value can name a space, a graph, an operation or a key.

    That is a non-empty text without NUL and without half of an emoji: both databases hold it.
    """
    return isinstance(value, str) and bool(value) and storable(value, len(value)) == value


def is_short_name(value: object) -> bool:
    """Return whether a value can name what is looked up by its name: it stands in an index of either database."""
    return isinstance(value, str) and is_name(value) and len(value.encode()) <= limits.NAME_BYTES_MAX
