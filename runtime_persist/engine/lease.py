"""A lease in a user's hands: what ``runtime.lease()`` gives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from runtime_persist.engine import settling
from runtime_persist.engine.flow import arun, run

if TYPE_CHECKING:
    from types import TracebackType

    from runtime_persist.engine.core import Engine
    from runtime_persist.engine.owned import OwnedRun


class Lease:
    """The lease of an owned run; leaving the ``with`` block releases it.

    Attributes:
        owned: the run.

    """

    def __init__(self, engine: Engine, owned: OwnedRun) -> None:
        """Hold the lease that ``owned`` has."""
        self._engine = engine
        self.owned = owned
        self._released = False

    @property
    def run_id(self) -> str:
        """Return the run's id."""
        return self.owned.lease.run_id

    @property
    def thread_id(self) -> str:
        """Return the thread the lease is for."""
        return self.owned.lease.thread_id

    @property
    def epoch(self) -> int:
        """Return the fencing token: it only grows."""
        return self.owned.lease.epoch

    def release(self) -> None:
        """End the run as succeeded and release the lease. Doing it again does nothing.

        Raises:
            LeaseLost, LeaseExpired: it was not this holder's any more; nothing was changed.

        """
        if not self._released:
            self._released = True
            run(settling.release(self._engine, self.owned))

    async def arelease(self) -> None:
        """Do :meth:`release` from an event loop."""
        if not self._released:
            self._released = True
            await arun(settling.release(self._engine, self.owned))

    def __enter__(self) -> Self:
        """Return the lease."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Release the lease; after an error the run ends as failed, and the error is not hidden."""
        if error is None:
            self.release()
            self.owned.check()
        elif not self._released:
            self._released = True
            run(settling.give_up(self._engine, self.owned, error))

    async def __aenter__(self) -> Self:
        """Return the lease."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Release the lease; after an error the run ends as failed, and the error is not hidden."""
        if error is None:
            await self.arelease()
            self.owned.check()
        elif not self._released:
            self._released = True
            await arun(settling.give_up(self._engine, self.owned, error))
