"""What the table is asked about: the rows of a run that are open, as they were together at one moment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True, slots=True)
class Found:
    """The open rows of a run.

    Attributes:
        run: its row, with the moment of the read as ``now_us``.
        attempts: its attempts, oldest first.
        progressed: its last epoch stored a checkpoint, or the success of an operation.
        began: it has stored a checkpoint.
        domains: its execution domains that are open.
        operations: its calls that are pending, or that were begun since the last checkpoint; each with ``try_status``,
            ``try_epoch`` and ``try_attempt_status``.
        tickets: its reserved tickets, each with ``operation_status`` and ``name`` of its call.
        heads: where its thread stands: the last checkpoint of the root, and those of subgraphs since then
            (``checkpoint_ns``, ``checkpoint_id``, ``created_us``).
        writes: what tasks have stored at these (``task_id``, ``task_path``, ``idx``, ``channel``).

    """

    run: Mapping[str, Any]
    attempts: Sequence[Mapping[str, Any]]
    progressed: bool
    began: bool
    domains: Sequence[Mapping[str, Any]]
    operations: Sequence[Mapping[str, Any]]
    tickets: Sequence[Mapping[str, Any]]
    heads: Sequence[Mapping[str, Any]]
    writes: Sequence[Mapping[str, Any]]

    @property
    def attempt(self) -> Mapping[str, Any] | None:
        """Return the current attempt."""
        named = self.run["attempt_id"]
        return next((row for row in self.attempts if row["attempt_id"] == named), None)

    @property
    def head(self) -> Mapping[str, Any] | None:
        """Return the checkpoint that the run goes on from (None: it starts with its input)."""
        if not goes_on(self.run, began=self.began):
            return None
        return next((row for row in self.heads if not row["checkpoint_ns"]), None)


def goes_on(run: Mapping[str, Any], *, began: bool) -> bool:
    """Return whether a run goes on at its thread's last checkpoint: it has stored one, or it retries a run."""
    return began or run["retry_of_run_id"] is not None
