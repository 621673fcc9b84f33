"""renew_lease: the holder extends its lease and learns whether the run is being stopped. Hot: one bundle.

A heartbeat extends the lease. It never proves that anything runs, and an expired lease is never renewed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import Executable, update

from runtime_persist.commands.parts.guards import FENCE
from runtime_persist.commands.parts.spec import HotCommand, LeaseCommand, Receipt
from runtime_persist.dialects.sql import bind, now_us, number
from runtime_persist.errors import InvariantBroken
from runtime_persist.model.guards import LEASE_HELD
from runtime_persist.plan import Fragment, Inputs, Outcome, Plan, done
from runtime_persist.schema import runs

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class RenewLease(LeaseCommand):
    """Extend the lease by ``ttl_us`` microseconds from the database's now.

    Answer: ``control`` and ``stop_reason`` of the run, ``expires_us``, and ``deadline_in_us`` (microseconds; negative
    when the run's deadline has passed, None when it has none). Refused: lost, released, expired.
    """

    ttl_us: int


def _extend(inputs: Inputs) -> Executable:
    return (
        update(runs)
        .values(expires_us=now_us() + number("ttl_us"))
        .where(runs.c.space == bind(runs.c.space), runs.c.run_id == bind(runs.c.run_id), inputs.gate())
    )


def _never(_: RenewLease) -> Plan[Receipt | None]:
    """A renewal leaves no receipt: sending it again just extends again."""
    return done(None)


def _answer(command: RenewLease, outcome: Outcome) -> Mapping[str, Any]:
    run, renewed = outcome.values["run"], outcome.values["renewed"]
    now, deadline = renewed["expires_us"] - command.ttl_us, renewed["deadline_us"]
    return {
        "control": run["control"],
        "stop_reason": run["stop_reason"],
        "expires_us": renewed["expires_us"],
        "deadline_in_us": None if deadline is None else deadline - now,
    }


SPEC = HotCommand(
    name="renew_lease",
    dto=RenewLease,
    guard=LEASE_HELD,
    receipt=Fragment("renewed", _extend, source=FENCE, returns=("expires_us", "deadline_us")),
    params=lambda c: ({"space": c.space, "run_id": c.run_id, "epoch": c.epoch, "ttl_us": c.ttl_us}, {}),
    lookup=_never,
    fingerprint=lambda _: b"",
    refuse=lambda _command, _outcome: InvariantBroken(),
    answer=_answer,
    urgent=True,
)
