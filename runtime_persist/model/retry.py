"""When a failed attempt of a run is tried again. Durations are the database's: it says when a retry is due."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Final, Self

import orjson

from runtime_persist.errors import InvalidInput
from runtime_persist.model import limits


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How often a run is attempted, and how long it waits in between.

    Only a failure that is proved (the graph raised) consumes an attempt. A takeover after a crash, an interrupt and a
    drain consume none; takeovers in a row without a new checkpoint or operation have a limit of their own.

    Attributes:
        max_attempts: failures after which the run is failed (1: it is never tried again).
        backoff: seconds before the first retry.
        factor: by which each further wait is longer.
        backoff_max: seconds no wait is longer than.
        jitter: share of a wait that chance takes off or adds (0.1: between 90 and 110 percent).
        max_takeovers: takeovers in a row without progress after which the run is failed as a ``crash_loop``.

    Raises:
        InvalidInput: a value that cannot be meant.

    """

    max_attempts: int = 3
    backoff: float = 1.0
    factor: float = 2.0
    backoff_max: float = 300.0
    jitter: float = 0.1
    max_takeovers: int = limits.MAX_TAKEOVERS

    def __post_init__(self) -> None:
        """Refuse what cannot be meant."""
        rules = {
            "max_attempts": type(self.max_attempts) is int and self.max_attempts >= 1,
            "backoff": 0 <= self.backoff <= limits.RETRY_BACKOFF_SECONDS_MAX,
            "factor": 1 <= self.factor <= limits.RETRY_FACTOR_MAX,
            "backoff_max": 0 <= self.backoff_max <= limits.RETRY_BACKOFF_SECONDS_MAX,
            "jitter": 0 <= self.jitter <= 1,
            "max_takeovers": type(self.max_takeovers) is int and self.max_takeovers >= 0,
        }
        for name, holds in rules.items():
            if not holds:
                msg = f"RetryPolicy: {name} cannot be {getattr(self, name)!r}"
                raise InvalidInput(msg, name=name)

    def delay_us(self, failures: int, chance: float) -> int:
        """Return the microseconds between the ``failures``-th failure and the next attempt.

        Args:
            failures: failures so far, this one included.
            chance: between 0 and 1, drawn by whoever reports the failure (a command decides nothing by chance).

        """
        wait = self.backoff
        for _ in range(failures - 1):
            wait *= self.factor
            if wait >= self.backoff_max:
                break
        wait *= 1 + self.jitter * (2 * chance - 1)
        return round(min(wait, self.backoff_max) * 1_000_000)

    def encoded(self) -> str:
        """Return it as it is stored with a run or a graph."""
        return orjson.dumps(dataclasses.asdict(self), option=orjson.OPT_SORT_KEYS).decode()

    @classmethod
    def decoded(cls, text: str | None) -> Self | RetryPolicy:
        """Return what :meth:`encoded` gave; without any, a failed run is not tried again."""
        return NO_RETRY if text is None else cls(**orjson.loads(text))


NO_RETRY: Final = RetryPolicy(max_attempts=1)
