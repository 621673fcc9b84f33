"""begin_operation: the start fence of a call of the outside world. Hot: one bundle.

It commits before anything is sent, with the operation's first try; found again, it answers what is stored.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from runtime_persist.commands.parts import beginning, events
from runtime_persist.commands.parts.beginning import Begins
from runtime_persist.commands.parts.guards import FENCE
from runtime_persist.commands.parts.spec import HotCommand
from runtime_persist.model.guards import LEASE_ACTIVE_OPEN
from runtime_persist.model.states import OperationStatus, TryStatus
from runtime_persist.plan import Fragment

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class BeginOperation(Begins):
    """Write the operation and its first try, before the call.

    Answer: ``{}`` when it was begun now; else the stored operation (receipt.replayed).
    Refused: no live lease, run stopping; other arguments under this identity (CommandMismatch).

    """


SPEC = HotCommand(
    name="begin_operation",
    dto=BeginOperation,
    guard=LEASE_ACTIVE_OPEN,
    receipt=Fragment("operation", beginning.operation, source=FENCE),
    effects=(Fragment("try", beginning.first_try, source="operation"), *events.hot("operation", "operation.started")),
    params=beginning.params,
    lookup=beginning.lookup,
    fingerprint=lambda command: command.request_fingerprint,
    refuse=beginning.refuse,
)


def begun_by(command: Begins, receipt: Any) -> bool:
    """Return whether a receipt says that this very command began the operation, so that its caller may call.

    A reply that was lost is looked up by the coordinator: the receipt is then a replayed one, of the command's own
    first try. Only the try's status tells it from one that a takeover has given up since.
    """
    row: Mapping[str, Any] = receipt.result
    return not receipt.replayed or (
        row["operation_id"] == command.operation_id
        and row["try_status"] == TryStatus.STARTED
        and row["try_epoch"] == command.epoch
        and row["status"] == OperationStatus.PENDING
    )
