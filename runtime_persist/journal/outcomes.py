"""What a function says that asks the outside about a call whose outcome nothing proves."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Happened:
    """The outside knows the call; ``result`` is what it gives back now and on every later call."""

    result: Any = None


@dataclass(frozen=True, slots=True)
class DidNotHappen:
    """The outside is sure that the call never arrived and never will: it is made again under the same key."""


@dataclass(frozen=True, slots=True)
class StillUnknown:
    """The outside cannot say: a person is asked, with ``reason``."""

    reason: str = ""


@dataclass(frozen=True, slots=True)
class Try:
    """What is known of one try of the call. Times are microseconds since 1970 by the database's clock.

    Attributes:
        try_no: its number, from 1.
        status: ``unknown`` or ``failed``.
        started_us: when its start was committed: it may have been sent any time later.
        ended_us: when it was known to be over, or to be nobody's any more.
        provider_request_id: what the outside called the request, if that was noted.
        first_output_us: when its first output came, if one was noted.
        error_type: type of what it raised.

    """

    try_no: int
    status: str
    started_us: int
    ended_us: int | None
    provider_request_id: str | None
    first_output_us: int | None
    error_type: str | None


Outcome = Happened | DidNotHappen | StillUnknown
Reconcile = Callable[[Mapping[str, Any], str, Sequence[Try]], Outcome | Awaitable[Outcome]]
"""``(request, idempotency_key, tries)``: the arguments of the call, its key, and its tries, the last one unknown."""
