"""store_content: a part of a large value is stored ahead of the command that will refer to it. Hot: one bundle.

Nothing refers to it yet, so nothing becomes visible, and no fence can be passed by it; when the command that follows is
refused, a collection finds it unused. The blobs are found by their addresses: they are their own receipt.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from runtime_persist.commands.parts import content
from runtime_persist.commands.parts.guards import FENCE
from runtime_persist.commands.parts.spec import Command, HotCommand
from runtime_persist.errors import InvariantBroken
from runtime_persist.model.guards import CONTROL
from runtime_persist.model.keys import fingerprint
from runtime_persist.plan import done

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from runtime_persist.model.payload import Blob


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreContent(Command):
    """Store content that no row refers to yet; what is there already stays as it is.

    Attributes:
        owner: of the content.
        blobs: in address order: all writers lock them in the same order.

    """

    owner: str
    blobs: Sequence[Blob]


def _params(command: StoreContent) -> tuple[Mapping[str, Any], Mapping[str, Sequence[Mapping[str, Any]]]]:
    return {"space": command.space, "owner": command.owner}, {"blobs": content.rows(command.blobs)}


SPEC = HotCommand(
    name="store_content",
    dto=StoreContent,
    guard=CONTROL,
    receipt=content.fragment(FENCE),
    params=_params,
    lookup=lambda _command: done(None),
    fingerprint=lambda command: fingerprint(command.owner.encode(), *(blob.address for blob in command.blobs)),
    accepted=lambda outcome: outcome.counts[FENCE] == 1,
    refuse=lambda _command, _outcome: InvariantBroken(),
)
