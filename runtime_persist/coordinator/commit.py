"""CommitCoordinator: commands in, receipts out. Nothing else writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from runtime_persist.commands import COMMANDS
from runtime_persist.commands.parts.spec import Command, HotCommand
from runtime_persist.coordinator import retry
from runtime_persist.coordinator.transaction import CommitReceipt, commit_cold, commit_hot
from runtime_persist.drivers import Driver, Job, Mode

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

    from runtime_persist.model.keys import SpaceKeys
    from runtime_persist.plan import Plan

R = TypeVar("R")


class CommitCoordinator:
    """The one door to the database of a space.

    Attributes:
        keys: the space's name and secret.

    """

    def __init__(self, driver: Driver, keys: SpaceKeys) -> None:
        """Commit and read through ``driver``."""
        self._driver = driver
        self.keys = keys

    @property
    def space(self) -> str:
        """Return the tenant whose rows this coordinator reads and writes."""
        return self.keys.space

    @property
    def losses(self) -> int:
        """Return how many connections ended by themselves: after one, what was acknowledged before may be gone."""
        return self._driver.losses

    def commit(self, command: Command) -> Future[CommitReceipt]:
        """Commit a command through the transaction path.

        The future gives the receipt, or raises the refusal; OutcomeUnknown when the connection was lost around the
        commit and the receipt cannot be read.
        """
        spec = COMMANDS[type(command)]
        if isinstance(spec, HotCommand):
            hot = spec
            plan, mode, urgent = (lambda: commit_hot(hot, command)), Mode.HOT, hot.urgent
        else:
            cold = spec
            plan, mode, urgent = (lambda: commit_cold(cold, command)), Mode.TRANSACTION, False
        order = getattr(command, "run_id", None) or getattr(command, "thread_id", None)
        return self._submit(spec.name, command.command_id, plan, mode, urgent=urgent, order=order)

    def read(self, name: str, plan: Callable[[], Plan[R]], *, snapshot: bool = False, brief: bool = False) -> Future[R]:
        """Run a plan that only reads.

        Args:
            name: for messages.
            plan: makes the plan.
            snapshot: all its statements see one moment.
            brief: it reads a few rows by key.

        """
        return self._submit(name, name, plan, Mode.SNAPSHOT if snapshot else Mode.READ, brief=brief)

    def close(self) -> None:
        """Finish what is queued and let go of the database."""
        self._driver.close()

    def _submit(
        self,
        name: str,
        command_id: str,
        plan: Callable[[], Plan[R]],
        mode: Mode,
        *,
        urgent: bool = False,
        order: str | None = None,
        brief: bool = False,
    ) -> Future[R]:
        return self._driver.submit(
            Job(
                name=name,
                plan=plan,
                mode=mode,
                delay=retry.delay,
                surrender=lambda error, maybe: retry.surrender(error, command_id, maybe_committed=maybe),
                urgent=urgent,
                order=order,
                brief=brief,
            ),
        )
