"""A run's lease for people: who may commit for it, until when, and who could before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict

from runtime_persist.errors import RunNotFound
from runtime_persist.model.states import LeasePhase
from runtime_persist.queries import leases as queries

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from runtime_persist.engine import Engine, Flow
    from runtime_persist.inspector.bundles import RecoveryBundle


class EpochView(BaseModel):
    """One attempt that held, or holds, the lease. Times are microseconds since 1970 by the database's clock."""

    model_config = ConfigDict(frozen=True)

    epoch: int | None
    attempt_no: int
    worker_id: str | None
    status: str
    claimed_us: int | None
    start_requested_us: int | None
    ended_us: int | None


class LeaseView(BaseModel):
    """Who may commit for a run.

    Attributes:
        state: ``held`` (its holder may commit), ``expired`` (nobody may, until it is claimed anew), ``released``.
        epoch: of it; every older one is refused.
        phase: ``recovering`` (what older attempts opened is being revoked), ``active``, ``released``.
        expires_us: when it runs out, or ran out.
        as_of_us: the moment that this is of.
        revocation: why it may be active, or that this could not be proved.
        domains_open: execution domains that are not proved revoked.
        epochs: the attempts, newest first.

    """

    model_config = ConfigDict(frozen=True)

    run_id: str
    thread_id: str
    status: str
    state: str
    epoch: int
    phase: str
    worker_id: str | None
    expires_us: int
    as_of_us: int
    control: str
    revocation: str | None
    domains_open: int
    epochs: list[EpochView]


def load_lease(engine: Engine, run_id: str) -> Flow[LeaseView]:
    """Read a run's lease (raises RunNotFound)."""
    found: queries.Lease | None = yield engine.coordinator.read(
        "read_lease", lambda: queries.lease(engine.space, run_id), snapshot=True
    )
    if found is None:
        msg = f"there is no run {run_id!r} in space {engine.space!r}"
        raise RunNotFound(msg, run_id=run_id)
    return _view(found.run, found.attempts)


def lease_of(bundle: RecoveryBundle) -> LeaseView:
    """Return the lease of a bundle's run, as of the moment that it was read."""
    return _view(bundle.run, bundle.rows["attempts"])


def _view(run: Mapping[str, Any], attempts: Sequence[Mapping[str, Any]]) -> LeaseView:
    released = run["phase"] == LeasePhase.RELEASED
    live = run["expires_us"] > run["now_us"]
    newest = sorted(attempts, key=lambda row: row["attempt_no"], reverse=True)
    return LeaseView.model_validate(
        {
            **{name: run[name] for name in LeaseView.model_fields if name in run},
            "state": "released" if released else "held" if live else "expired",
            "as_of_us": run["now_us"],
            "epochs": [EpochView.model_validate({**row}) for row in newest],
        }
    )
