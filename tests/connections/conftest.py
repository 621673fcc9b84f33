"""The fixtures of this suite: what stands between a program and its database, and what happens to it."""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from runtime_persist.testing.pooler import TransactionPooler
from runtime_persist.testing.postgres import PostgresServer
from runtime_persist.testing.proxy import PostgresProxy
from tests.fixtures.raw import PostgresRaw, wait_until
from tests.fixtures.world import World
from tests.support.plugin import *  # noqa: F403

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture
def pooler(postgres_server: PostgresServer) -> Iterator[TransactionPooler]:
    """A transaction pooler whose clients share two sessions."""
    with TransactionPooler("127.0.0.1", postgres_server.port, sessions=2) as made:
        yield made


PGBOUNCER = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
PGBOUNCER_SETTINGS = """
[databases]
* = host=127.0.0.1 port={server}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
auth_type = trust
auth_file = {folder}/users
pool_mode = transaction
default_pool_size = 2
unix_socket_dir =
"""


def _listens(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


@contextlib.contextmanager
def pgbouncer(server: PostgresServer) -> Iterator[Callable[[str], str]]:
    """The real thing, where it is installed."""
    with tempfile.TemporaryDirectory() as name, socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
        found.close()
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "users").write_text('"postgres" ""\n')
        (folder / "settings").write_text(PGBOUNCER_SETTINGS.format(server=server.port, port=port, folder=folder))
        user = ["-u", "nobody"] if os.getuid() == 0 else []
        process = subprocess.Popen([str(PGBOUNCER), "-q", *user, folder / "settings"], stderr=subprocess.DEVNULL)
        try:
            wait_until(lambda: _listens(port), "pgbouncer listens")
            yield lambda dsn: urlsplit(dsn)._replace(netloc=f"postgres@127.0.0.1:{port}").geturl()
        finally:
            process.terminate()
            process.wait()


@pytest.fixture(params=["pooler", *(["pgbouncer"] if PGBOUNCER else [])])
def pooled(request: pytest.FixtureRequest, postgres_server: PostgresServer) -> Iterator[Callable[[str], str]]:
    """Turns the address of a database into one through a pooler (PgBouncer too, where it is installed)."""
    if request.param == "pgbouncer":
        with pgbouncer(postgres_server) as made:
            yield made
    else:
        yield request.getfixturevalue("pooler").dsn


@pytest.fixture
def counted_pooler(pooler: TransactionPooler) -> Iterator[PostgresProxy]:
    """A proxy before the pooler: it sees what the program sends."""
    with PostgresProxy("127.0.0.1", pooler.port) as made:
        yield made


@pytest.fixture
def proxy(postgres_server: PostgresServer) -> Iterator[PostgresProxy]:
    """A proxy right before the server."""
    with PostgresProxy("127.0.0.1", postgres_server.port) as made:
        yield made


@pytest.fixture(scope="module")
def own_server() -> Iterator[PostgresServer]:
    """A server that a test may crash or run out of connections."""
    with PostgresServer.start(settings={"max_connections": "8", "superuser_reserved_connections": "3"}) as server:
        yield server


@pytest.fixture
def worlds(open_engine: Callable[..., Any]) -> Iterator[Callable[..., World]]:
    """Makes worlds; the connection beside each goes straight to ``beside`` (default: the engine's URL)."""
    made: list[World] = []

    def opens(url: str, beside: str | None = None, **options: Any) -> World:
        engine = open_engine(url, **options)
        if beside is None:
            world = World(engine)
        else:  # its own connection would be opened with the engine's URL
            world = World.__new__(World)
            world.engine, world.space, world.keys = engine, engine.space, engine.coordinator.keys
            world.raw = PostgresRaw(beside)
        made.append(world)
        return world

    yield opens
    for world in made:
        world.raw.close()
        world.engine.close()  # before proxies and poolers go


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    """Warnings are looked at where they are meant."""
    caplog.set_level(logging.WARNING, "runtime_persist")
