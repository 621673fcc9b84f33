"""The clock of checkpoint ids: ids of one thread never go back, also when a slower clock takes a thread over.

LangGraph makes ids from the wall clock, monotonic only inside one process (contract §8, T1). Loading a thread raises
this process's id clock to the thread's newest id.
"""

from __future__ import annotations

import logging
import uuid
from typing import Any

from langgraph.checkpoint.base import id as ids

from runtime_persist.errors import ClockWentBack

_log = logging.getLogger("runtime_persist.saver")
_VERSION = 6


def raise_to(checkpoint_id: str) -> None:
    """Raise this process's id clock to an id that was loaded; ids that LangGraph did not make are left alone."""
    try:
        found = uuid.UUID(checkpoint_id)
    except ValueError:
        return
    if found.version != _VERSION:
        return
    # A UUIDv6 has the timestamp's 60 bits in order, with the version between the upper 48 and the lower 12.
    timestamp = (found.int >> 80) << 12 | (found.int >> 64) & 0x0FFF
    clock: Any = ids  # the only place where LangGraph keeps it is a private name
    last = clock._last_v6_timestamp  # noqa: SLF001
    if last is None or timestamp > last:
        clock._last_v6_timestamp = timestamp  # noqa: SLF001


def check(checkpoint_id: str, parent_id: str | None, *, owned: bool) -> None:
    """Refuse, under a lease, a checkpoint whose id is not greater than its parent's; without one, say so in the log.

    Raises:
        ClockWentBack: it is owned and goes back.

    """
    if parent_id is None or checkpoint_id > parent_id:
        return
    msg = f"checkpoint {checkpoint_id} is not greater than its parent {parent_id}: the clock of this process is behind"
    if owned:
        raise ClockWentBack(msg, checkpoint_id=checkpoint_id, parent_id=parent_id)
    _log.warning("%s; it is stored, and is the thread's head", msg)
