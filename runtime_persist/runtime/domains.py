"""What a person asks and says about execution domains: what a run's attempts could still write to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime_persist.commands.confirm_revocation import ConfirmRevocation
from runtime_persist.engine import Engine, Flow, arun, domains, run
from runtime_persist.errors import RunNotFound
from runtime_persist.model import limits
from runtime_persist.model.ids import new_id
from runtime_persist.model.text import redacted, storable
from runtime_persist.queries import runs as run_queries
from runtime_persist.runtime.answering import actor_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runtime_persist.model.domains import Domain

_SAID = "a person says that it can no longer write"


class Domains:
    """Part of :class:`runtime_persist.runtime.runs.Runs`."""

    _engine: Engine

    def domains(self, run_id: str) -> Sequence[Domain]:
        """Return the execution domains that a run's attempts opened, oldest first, with their receipts.

        Raises:
            RunNotFound: there is no such run.

        """
        return run(self._domains(run_id))

    async def adomains(self, run_id: str) -> Sequence[Domain]:
        """Do :meth:`domains` from an event loop."""
        return await arun(self._domains(run_id))

    def confirm_revoked(self, run_id: str, domain_id: str, *, by: str, why: str | None = None) -> Domain:
        """Say that a domain can no longer write, when nothing else proves it: the run can be taken over then.

        Say it only when you know it: the process was ended, the machine thrown away. What you say is stored with your
        name and the time, as a receipt of kind ``stated``.

        Args:
            run_id: the run.
            domain_id: its domain, of :meth:`domains` or the event ``run.takeover_blocked``.
            by: who says it.
            why: how it is known.

        Returns:
            The domain with its receipt; one that was revoked before keeps its first receipt.

        Raises:
            InvalidInput: nobody is named.
            IllegalTransition: its attempt holds the lease still, and says itself what becomes of it.
            RunNotFound, DomainNotFound: there is no such run, or it has no such domain.

        """
        return run(self._confirm_revoked(run_id, domain_id, by, why))

    async def aconfirm_revoked(self, run_id: str, domain_id: str, *, by: str, why: str | None = None) -> Domain:
        """Do :meth:`confirm_revoked` from an event loop."""
        return await arun(self._confirm_revoked(run_id, domain_id, by, why))

    def _domains(self, run_id: str) -> Flow[Sequence[Domain]]:
        engine = self._engine
        found = yield from domains.of_run(engine, run_id)
        known = found or (yield engine.coordinator.read("read_run", lambda: run_queries.run(engine.space, run_id)))
        if not known:
            msg = f"there is no run {run_id!r} in space {engine.space!r}"
            raise RunNotFound(msg, run_id=run_id)
        return found

    def _confirm_revoked(self, run_id: str, domain_id: str, by: str, why: str | None) -> Flow[Domain]:
        actor = actor_of(by)
        engine = self._engine
        yield engine.coordinator.commit(
            ConfirmRevocation(
                space=engine.space,
                command_id=new_id(),
                actor=actor,
                run_id=run_id,
                domain_id=domain_id,
                saw=storable(redacted(why or _SAID), limits.ERROR_TEXT_CHARS_MAX),
            ),
        )
        return next(one for one in (yield from domains.of_run(engine, run_id)) if one.domain_id == domain_id)
