"""What processes of the subprocess runtime say to each other: one message a packet, over a pair of sockets."""

from __future__ import annotations

import contextlib
import socket
from typing import TYPE_CHECKING, Any, Final

import ormsgpack

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PACKET_BYTES_MAX: Final = 131_072
_FDS_MAX = 4


def pair() -> tuple[socket.socket, socket.socket]:
    """Return two connected ends; each keeps the bounds of messages, and hears of the other's end."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def send(channel: socket.socket, message: Mapping[str, Any], fds: Sequence[int] = ()) -> bool:
    """Send a message, with open files; return whether there was somebody to take it."""
    data = ormsgpack.packb(dict(message))
    try:
        if fds:
            socket.send_fds(channel, [data], list(fds))
        else:
            channel.sendall(data)
    except OSError:
        return False
    return True


def receive(channel: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """Wait for a message and the files that came with it; None when the other end is gone."""
    with contextlib.suppress(ConnectionError):
        data, fds, _, _ = socket.recv_fds(channel, PACKET_BYTES_MAX, _FDS_MAX)
        if data:
            found: dict[str, Any] = ormsgpack.unpackb(data)
            return found, fds
    return None
