"""note_attempt: what is known of a try while it runs. Hot: one bundle. Accepted while the run is stopping.

It is what a later process asks the outside by, when nothing else proves what became of the try.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import Executable, case, func, update

from runtime_persist.commands.parts import tries
from runtime_persist.commands.parts.guards import FENCE
from runtime_persist.commands.parts.spec import HotCommand, LeaseCommand, Receipt
from runtime_persist.dialects.sql import bind, constant, now_us
from runtime_persist.errors import IllegalTransition
from runtime_persist.model.guards import LEASE_ACTIVE
from runtime_persist.model.states import TryStatus
from runtime_persist.plan import Fragment, Inputs, Plan, done
from runtime_persist.schema import operation_tries

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteAttempt(LeaseCommand):
    """Note what the outside calls the request, or that its first output came (the first one noted counts).

    Sending it again writes the same.

    Attributes:
        operation_id: the operation.
        try_no: the try; it must be started and not ended.
        provider_request_id: what the outside calls the request (None: it stays what it was).
        first_output_kind: kind of the first output, which came now (None: none came).

    Refused: the lease is lost, released or expired; the try has ended (IllegalTransition).

    """

    operation_id: str
    try_no: int
    provider_request_id: str | None = None
    first_output_kind: str | None = None


_T = operation_tries.c


def _note(inputs: Inputs) -> Executable:
    kind = bind(_T.first_output_kind)
    return (
        update(operation_tries)
        .values(
            provider_request_id=func.coalesce(bind(_T.provider_request_id), _T.provider_request_id),
            first_output_kind=func.coalesce(_T.first_output_kind, kind),
            first_output_us=func.coalesce(_T.first_output_us, case((kind.is_not(None), now_us()))),
        )
        .where(
            *tries.is_try(),
            _T.status == constant(TryStatus.STARTED.value),
            inputs.gate(),
        )
    )


def _never(_: NoteAttempt) -> Plan[Receipt | None]:
    """A note leaves no receipt: sending it again just writes the same."""
    return done(None)


def _params(command: NoteAttempt) -> tuple[Mapping[str, Any], Mapping[str, Sequence[Mapping[str, Any]]]]:
    return {
        "space": command.space,
        "run_id": command.run_id,
        "epoch": command.epoch,
        "operation_id": command.operation_id,
        "try_no": command.try_no,
        "provider_request_id": command.provider_request_id,
        "first_output_kind": command.first_output_kind,
    }, {}


SPEC = HotCommand(
    name="note_attempt",
    dto=NoteAttempt,
    guard=LEASE_ACTIVE,
    receipt=Fragment("noted", _note, source=FENCE),
    params=_params,
    lookup=_never,
    fingerprint=lambda _: b"",
    refuse=lambda command, _: IllegalTransition(
        f"try {command.try_no} of operation {command.operation_id} has ended; nothing is noted about it any more",
        operation_id=command.operation_id,
    ),
)
