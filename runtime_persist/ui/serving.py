"""Serves the pages on a socket, until a signal ends it."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import signal
import socket
from typing import TYPE_CHECKING, Final

import uvicorn

from runtime_persist.errors import InvalidInput
from runtime_persist.ui.app import create_app

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from runtime_persist.runtime import Runtime
    from runtime_persist.ui.security import Access

_SHUTDOWN_SECONDS: Final = 5
_ANY: Final = frozenset({"0.0.0.0", "::"})  # noqa: S104 (compared with, not bound to)
_HTTP_PORT: Final = 80


def is_loopback(host: str) -> bool:
    """Return whether an address is reached from this machine alone."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens (raises InvalidInput: it cannot)."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host, port))
        sock.listen(128)
    except (OSError, OverflowError, UnicodeError) as error:
        sock.close()
        said = getattr(error, "strerror", None) or str(error)
        msg = f"cannot listen on {host}, port {port}: {said}"
        raise InvalidInput(msg, host=host, port=port) from error
    return sock


def names(host: str, port: int, more: Sequence[str]) -> frozenset[str]:
    """Return the names that pages are reached by: this machine's own, and those that were said.

    Raises:
        InvalidInput: it listens on all addresses, and no name was said.

    """
    if host in _ANY and not more:
        msg = f"{host} is every address of this machine: say by which name it is reached, with --allow-host"
        raise InvalidInput(msg)
    said = ["127.0.0.1", "localhost", "[::1]", *more]
    if host not in _ANY:
        said.append(f"[{host}]" if ":" in host else host)
    made = {f"{name}:{port}" for name in said} | {name for name in more if ":" in name.rpartition("]")[2]}
    return frozenset(name.lower() for name in made | (set(said) if port == _HTTP_PORT else set()))


class _Server(uvicorn.Server):
    """Says when it answers; a signal ends it, and is not raised once more."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        before = {one: signal.signal(one, self.handle_exit) for one in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for one, handler in before.items():
                signal.signal(one, handler)


def serve(runtime: Runtime, access: Access, sock: socket.socket, ready: Callable[[], None]) -> None:
    """Serve the pages of a database until SIGINT or SIGTERM.

    Args:
        runtime: the opened database.
        access: what is allowed, and to whom.
        sock: where; it is closed at the end.
        ready: is called once requests are answered.

    """
    config = uvicorn.Config(
        create_app(runtime, access),
        loop="asyncio",
        http="h11",
        ws="none",
        lifespan="off",
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
    )
    with contextlib.closing(sock):
        asyncio.run(_Server(config, ready).serve(sockets=[sock]))
