"""The database as content store: blobs travel inside the command that refers to them.

So nothing is visible before the commit that references it, and an address without content cannot be committed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from runtime_persist.contentstore.packing import pack, unpack
from runtime_persist.errors import CheckpointCorrupt
from runtime_persist.model.payload import Blob, PayloadRef

if TYPE_CHECKING:
    from collections.abc import Mapping

    from runtime_persist.model.keys import SpaceKeys


@dataclass(slots=True)
class ContentWriter:
    """Collects the blobs of one command.

    Attributes:
        keys: of the space.
        owner: whose content it is; a reader names the owner too.

    """

    keys: SpaceKeys
    owner: str
    _blobs: dict[bytes, Blob] = field(default_factory=dict)

    def put(self, kind: str, data: bytes, inline_max: int) -> PayloadRef:
        """Return a reference to ``data``: inline up to ``inline_max`` bytes, else by address with a blob to store."""
        if len(data) <= inline_max:
            return PayloadRef(kind, len(data), inline=data)
        address = self.keys.address(self.owner, data)
        if address not in self._blobs:
            self._blobs[address] = Blob(address, len(data), pack(data))
        return PayloadRef(kind, len(data), address=address)

    def blobs(self) -> tuple[Blob, ...]:
        """Return the blobs in address order: all writers lock them in the same order."""
        return tuple(self._blobs[address] for address in sorted(self._blobs))


def checked(keys: SpaceKeys, owner: str, ref: PayloadRef, stored: Mapping[bytes, bytes], where: str) -> bytes:
    """Return the bytes a reference stands for.

    Args:
        keys: of the space.
        owner: whose content it is.
        ref: the reference.
        stored: packed content by address, as read.
        where: what the payload is, for the error ("channel messages of checkpoint …").

    Raises:
        CheckpointCorrupt: the content is missing, or its hash is not its address.

    """
    if ref.address is None:
        return ref.inline or b""
    packed = stored.get(ref.address)
    if packed is None:
        msg = f"content of {where} is missing (address {ref.address.hex()})"
        raise CheckpointCorrupt(msg, address=ref.address.hex(), where=where)
    try:
        data = unpack(packed)
    except CheckpointCorrupt as error:
        msg = f"content of {where} is damaged (address {ref.address.hex()}): {error.message}"
        raise CheckpointCorrupt(msg, address=ref.address.hex(), where=where) from error
    if keys.address(owner, data) != ref.address or len(data) != ref.size:
        msg = f"content of {where} does not have the hash of its address {ref.address.hex()}"
        raise CheckpointCorrupt(msg, address=ref.address.hex(), where=where)
    return data
