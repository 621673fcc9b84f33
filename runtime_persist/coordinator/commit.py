"""CommitCoordinator: commands in, receipts out. Nothing else writes."""

from __future__ import annotations

from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from runtime_persist.commands import COMMANDS
from runtime_persist.commands.parts.spec import Command, HotCommand, LeaseCommand
from runtime_persist.coordinator import retry
from runtime_persist.coordinator.transaction import CommitReceipt, commit_cold, commit_hot
from runtime_persist.drivers import Driver, Job, Mode
from runtime_persist.errors import SpaceReadOnly
from runtime_persist.telemetry import active

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from runtime_persist.errors import RuntimePersistError
    from runtime_persist.model.keys import SpaceKeys
    from runtime_persist.plan import Plan

R = TypeVar("R")


class Listener(Protocol):
    """Hears what is committed.

    Attributes:
        local: somebody in this process waits for something: it hears of hot commands too.

    """

    @property
    def local(self) -> bool:
        """See above."""

    def committed(self, run_id: str, types: Sequence[str]) -> None:
        """Hear of events of a run; ``types`` of those that a cold command appended."""


class CommitCoordinator:
    """The one door to the database of a space.

    Attributes:
        keys: the space's name and secret.
        as_of_us: of a space that a bundle was imported into: the moment of its rows, as which every read takes the
            database's clock. Nothing is committed there. None: a space like any other.

    """

    def __init__(
        self, driver: Driver, keys: SpaceKeys, listener: Listener | None = None, as_of_us: int | None = None
    ) -> None:
        """Commit and read through ``driver``; tell ``listener`` what is committed."""
        self._driver = driver
        self._listener = listener
        self._telemetry = active()
        self.keys = keys
        self.as_of_us = as_of_us

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
        if self.as_of_us is not None:
            msg = f"{spec.name}: space {self.space!r} is an imported bundle, which is only looked at"
            refused: Future[CommitReceipt] = Future()
            refused.set_exception(SpaceReadOnly(msg, space=self.space, command=spec.name))
            return refused
        if isinstance(spec, HotCommand):
            hot = spec
            plan, mode, urgent = (lambda: commit_hot(hot, command)), Mode.HOT, hot.urgent
        else:
            cold = spec
            plan, mode, urgent = (lambda: commit_cold(cold, command)), Mode.TRANSACTION, False
        order = getattr(command, "run_id", None) or getattr(command, "thread_id", None)
        telemetry = self._telemetry
        sent = telemetry.sent(spec.name) if telemetry is not None and telemetry.heard else None
        future = self._submit(spec.name, command.command_id, plan, mode, urgent=urgent, order=order)
        if sent is not None:
            future.add_done_callback(sent.answered)
        if self._listener is not None and (mode is Mode.TRANSACTION or self._listener.local):
            future.add_done_callback(lambda committed: self._tell(command, committed))
        return future

    def _tell(self, command: Command, future: Future[CommitReceipt]) -> None:
        if self._listener is None or future.exception() is not None:
            return
        types: dict[str, list[str]] = {}
        if isinstance(command, LeaseCommand):
            types[command.run_id] = []
        for run_id, kind in future.result().told:
            types.setdefault(run_id, []).append(kind)
        for run_id, found in types.items():
            self._listener.committed(run_id, found)

    def read(self, name: str, plan: Callable[[], Plan[R]], *, snapshot: bool = False, brief: bool = False) -> Future[R]:
        """Run a plan that only reads.

        Args:
            name: for messages.
            plan: makes the plan.
            snapshot: all its statements see one moment.
            brief: it reads a few rows by key.

        """
        as_of_us = self.as_of_us
        asked = plan if as_of_us is None else lambda: _as_of(plan(), as_of_us)
        return self._submit(name, name, asked, Mode.SNAPSHOT if snapshot else Mode.READ, brief=brief)

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
                delay=lambda error, tries: self._delay(name, error, tries),
                surrender=lambda error, maybe: retry.surrender(error, command_id, maybe_committed=maybe),
                urgent=urgent,
                order=order,
                brief=brief,
            ),
        )

    def _delay(self, name: str, error: RuntimePersistError, tries: int) -> float | None:
        pause = retry.delay(error, tries)
        if pause is not None and self._telemetry is not None:
            self._telemetry.retried(name, error)
        return pause


def _as_of(plan: Plan[R], now_us: int) -> Plan[R]:
    """Run a plan that takes a moment for the database's clock (``now_us`` of its rows)."""
    given: Any = None
    while True:
        try:
            step = plan.send(given)
        except StopIteration as ended:
            found: R = ended.value
            return found
        rows = yield step
        given = [{**row, "now_us": now_us} if "now_us" in row else row for row in rows]
