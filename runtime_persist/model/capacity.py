"""What an instance reports of its capacity, and how its occupancy is counted: by identity, never by sums."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import orjson

from runtime_persist.errors import InvalidInput
from runtime_persist.model import limits
from runtime_persist.model.ids import is_name


def task_id(run_id: str, epoch: int) -> str:
    """Return the id of what executes a run under an epoch: the same on the instance and in the database."""
    return f"{run_id}:{epoch}"


@dataclass(frozen=True, slots=True)
class Report:
    """An instance's slots, and the ids of everything that occupies one, whoever started it.

    Attributes:
        slots: tasks that it executes at the same time.
        active_task_ids: what it executes now; each id is there once.

    """

    slots: int
    active_task_ids: tuple[str, ...]

    def occupied(self, held: Iterable[str]) -> int:
        """Return how many slots are taken by what was reported and by the tasks ``held`` in the database.

        A task that both know counts once; a task that only one of them knows counts too.
        """
        return len({*self.active_task_ids, *held})

    def encoded(self) -> str:
        """Return the task ids as they are stored."""
        return orjson.dumps(self.active_task_ids).decode()

    @classmethod
    def checked(cls, slots: object, active_task_ids: object) -> Report:
        """Return what somebody reports.

        Raises:
            InvalidInput: no slot, or task ids that are empty, twice there, or no texts.

        """
        if isinstance(slots, bool) or not isinstance(slots, int) or not 1 <= slots <= limits.SLOTS_MAX:
            msg = f"an instance has 1 to {limits.SLOTS_MAX:,} slots, not {slots!r}"
            raise InvalidInput(msg)
        ids = active_task_ids
        if isinstance(ids, str) or not isinstance(ids, Sequence) or not all(is_name(one) for one in ids):
            msg = f"active_task_ids are non-empty texts, not {ids!r}"
            raise InvalidInput(msg)
        if len(set(ids)) != len(ids):
            msg = "active_task_ids has an id twice: each task has one of its own"
            raise InvalidInput(msg)
        return cls(slots, tuple(ids))

    @classmethod
    def stored(cls, slots: int, data: str) -> Report | None:
        """Return a stored report, None when it is incomplete."""
        try:
            return cls.checked(slots, orjson.loads(data))
        except (ValueError, InvalidInput):
            return None
