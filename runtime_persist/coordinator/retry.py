"""Which errors are tried again, and how long to wait: bounded, classified, with jitter."""

from __future__ import annotations

import random

from runtime_persist.errors import ConnectionLost, OutcomeUnknown, RuntimePersistError, StoreBusy
from runtime_persist.model import limits

_FIRST_PAUSE_SECONDS = 0.02
_LONGEST_PAUSE_SECONDS = 1.0


def delay(error: RuntimePersistError, tries: int) -> float | None:
    """Return the seconds to wait before the next try, or None to give up.

    Only what a database says for the moment (busy, serialization, deadlock, lost connection) is tried again. The
    command is sent as it was: its receipt makes a second commit impossible, and the guard is checked again.
    """
    if not isinstance(error, StoreBusy | ConnectionLost) or tries + 1 >= limits.RETRY_ATTEMPTS_MAX:
        return None
    pause: float = min(_FIRST_PAUSE_SECONDS * 2**tries, _LONGEST_PAUSE_SECONDS)
    return pause * (0.5 + random.random() / 2)  # noqa: S311 (jitter, not a secret)


def surrender(error: RuntimePersistError, command_id: str, *, maybe_committed: bool) -> RuntimePersistError:
    """Return what the caller gets when trying again is over: a lost reply is unknown, never guessed."""
    if maybe_committed and isinstance(error, ConnectionLost):
        msg = f"the connection was lost around the commit of {command_id}, and its receipt cannot be read now"
        return OutcomeUnknown(msg, command_id=command_id)
    return error
