"""What was asked for on the command line."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ROUNDS = {
    "micro": 3,
    "graphs": 3,
    "storage": 1,
    "growth": 3,
    "slow_disk": 3,
    "rows": 1,
    "queues": 2,
    "steps": 3,
    "big_run": 3,
}


@dataclass(frozen=True)
class Options:
    """The wishes of one run.

    Attributes:
        quick: small sizes and one round: to see that all of it works.
        rounds: rounds of each part; None: as many as suit it.
        only: words; what is measured has one of them in its name. Empty: everything.
        keys: savers that take part. Empty: all.

    """

    quick: bool = False
    rounds: int | None = None
    only: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()

    @property
    def seconds(self) -> float:
        """Length of a slice."""
        return 0.1 if self.quick else 0.2

    def as_json(self) -> str:
        """Return the wishes for a process of their own."""
        return json.dumps(
            {"quick": self.quick, "rounds": self.rounds, "only": list(self.only), "keys": list(self.keys)}
        )

    @classmethod
    def from_json(cls, text: str) -> Options:
        given = json.loads(text)
        return cls(given["quick"], given["rounds"], tuple(given["only"]), tuple(given["keys"]))

    def wants(self, name: str) -> bool:
        return not self.only or any(word in name for word in self.only)

    def savers(self, all_of_them):
        return [saver for saver in all_of_them if not self.keys or saver.key in self.keys]

    def rounds_of(self, part: str) -> range:
        return range(self.rounds or (1 if self.quick else ROUNDS[part]))

    def progress(self, things: Iterable, what: str) -> Iterator:
        """Yield the things, with a bar."""
        with Progress(transient=True) as bar:
            yield from bar.track(list(things), description=what)
