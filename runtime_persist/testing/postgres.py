"""A real PostgreSQL server for tests, started in about a second and gone with the last process that uses it.

    with PostgresServer.start() as server:
        dsn = server.create_database()

The server keeps its data in a folder of its own below the temp folder, which is removed at the end. It
listens on a unix socket and on 127.0.0.1 and trusts every local user: use it for nothing but tests. Its life
hangs on a FIFO that its users hold open (see `_pg_supervisor`), so not even a SIGKILL of the tests leaves it
running.

POSIX only. `create_database` and `drop_database` need asyncpg (the extra `postgres`).
"""

import asyncio
import contextlib
import fcntl
import json
import os
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import uuid
import weakref
from collections.abc import Coroutine, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote, unquote, urlsplit

from runtime_persist.testing._pg_binaries import (
    Account,
    PostgresNotFound,
    PostgresStartFailed,
    usable_binaries,
)

__all__ = ["DEFAULT_SETTINGS", "PostgresNotFound", "PostgresServer", "PostgresStartFailed", "shared_server"]

# Commits do not reach the disk: fast, and right for tests, where a crash is a killed process and never a
# power cut. Pass settings={"fsync": "on"} to measure.
DEFAULT_SETTINGS: Mapping[str, str] = {
    "fsync": "off",
    "full_page_writes": "off",
    "max_connections": "200",
    "timezone": "UTC",
    "lc_messages": "C",
}

SUPERUSER = "postgres"
START_SECONDS = 60.0
PORT_ATTEMPTS = 5
# The shortest limit of a unix socket's path among the systems we know (macOS), less its NUL.
SOCKET_PATH_LIMIT = 103
SUPERVISOR = Path(__file__).with_name("_pg_supervisor.py")

_held: "weakref.WeakSet[PostgresServer]" = weakref.WeakSet()


class PostgresServer:
    """One running server. Get one from `start` or `shared_server`; `stop` it, or use it as a context manager.

    Attributes:
        root: the server's own folder, removed when it ends.
        socket_dir: the folder with its unix socket.
        port: its TCP port on 127.0.0.1, which also names the socket.
    """

    def __init__(self, root: Path, port: int, lock_file: Path, hold_fd: int) -> None:
        """Take over `hold_fd`, a writing end of the server's FIFO. Called by `start` and `shared_server`."""
        self.root = root
        self.socket_dir = root / "run"
        self.port = port
        self._lock_file = lock_file
        self._hold_fd: int | None = hold_fd
        self._alive_fd = os.open(root / "alive", os.O_RDONLY)
        _held.add(self)

    @classmethod
    def start(cls, root: Path | None = None, settings: Mapping[str, str] | None = None) -> Self:
        """Start a server of one's own.

        Args:
            root: the folder in which the server's own folder is made; the temp folder by default. When this
                process is root, other users must be able to pass through it.
            settings: configuration parameters on top of DEFAULT_SETTINGS.

        Raises:
            PostgresNotFound: there are no server programs on this machine.
            PostgresStartFailed: they do not come up.
        """
        return cls._launch(root, settings, shared=None)

    @classmethod
    def _launch(cls, base: Path | None, settings: Mapping[str, str] | None, shared: Path | None) -> Self:
        """Start on a free port; try another one when somebody was faster to take it."""
        for attempt in range(1, PORT_ATTEMPTS + 1):
            root = _make_root(base)
            try:
                return cls._launch_once(root, settings, shared)
            except PostgresStartFailed as error:
                if "could not create any TCP/IP sockets" not in str(error) or attempt == PORT_ATTEMPTS:
                    raise
            finally:
                # Without a supervisor that took it over, the folder is still ours to remove.
                if not (root / "alive").exists():
                    shutil.rmtree(root, ignore_errors=True)
        raise AssertionError("the last attempt returns or raises")  # pragma: no cover

    @classmethod
    def _launch_once(cls, root: Path, settings: Mapping[str, str] | None, shared: Path | None) -> Self:
        account = Account.choose()
        programs = usable_binaries(root, account)
        data, sockets, fifo = root / "data", root / "run", root / "holders"
        for directory in (data, sockets):
            directory.mkdir(mode=0o700 if directory is data else 0o755)
            if account is not None:
                os.chown(directory, account.uid, account.gid)
        port = _free_port()
        lock_file = (shared or root) / "postgres.lock"
        spec = {
            "root": str(root),
            "initdb": _initdb_command(programs, data),
            "postgres": _postgres_command(programs, data, sockets, port, settings),
            "user": account.uid if account else None,
            "group": account.gid if account else None,
            "lock_file": str(lock_file),
            "alive_file": str(root / "alive"),
            "log_file": str(root / "log"),
            "state_file": str((shared or root) / "postgres.json"),
        }
        lock_file.touch()
        (root / "log").touch()
        os.mkfifo(fifo, 0o600)
        # This order, or the second open would wait for the first.
        reading = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
        hold_fd = os.open(fifo, os.O_WRONLY)
        (root / "alive").touch()
        try:
            _run_supervisor(spec, reading)
            return cls(root, port, lock_file, hold_fd)
        except BaseException:
            os.close(hold_fd)
            raise
        finally:
            os.close(reading)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Let go of the server; the last one to do so waits until its processes and its folder are gone.

        Calling it again does nothing, and so does calling it in a forked child.
        """
        if self._hold_fd is None:
            return
        # A server that died by itself took its folder, and the lock in it, along.
        with _locked(self._lock_file) if self._lock_file.exists() else contextlib.nullcontext():
            os.close(self._hold_fd)
            self._hold_fd = None
            last = not _has_holders(self.root / "holders")
        if last:
            # The supervisor holds this lock until it exits.
            fcntl.flock(self._alive_fd, fcntl.LOCK_SH)
        os.close(self._alive_fd)
        _held.discard(self)

    def _forget(self) -> None:
        """In a forked child: close what was inherited, so that the child does not count as a user."""
        if self._hold_fd is not None:
            os.close(self._hold_fd)
            os.close(self._alive_fd)
            self._hold_fd = None

    def dsn(self, database: str = "postgres") -> str:
        """The address of a database over TCP."""
        return f"postgresql://{SUPERUSER}@127.0.0.1:{self.port}/{quote(database, safe='')}"

    def socket_dsn(self, database: str = "postgres") -> str:
        """The address of a database over the unix socket, a little faster and out of a proxy's reach."""
        host = quote(str(self.socket_dir), safe="")
        return f"postgresql://{SUPERUSER}@/{quote(database, safe='')}?host={host}&port={self.port}"

    def create_database(self, template: str | None = None) -> str:
        """Make a database with a name of its own and return its `dsn`.

        Args:
            template: the name of a database to copy; nobody may be connected to it meanwhile.
        """
        name = f"t_{uuid.uuid4().hex[:12]}"
        self._execute(f"CREATE DATABASE {_quoted(name)} TEMPLATE {_quoted(template or 'template1')}")
        return self.dsn(name)

    def drop_database(self, dsn: str) -> None:
        """Remove the database of a `dsn`, ending the sessions that are still connected to it."""
        name = unquote(urlsplit(dsn).path.removeprefix("/"))
        self._execute(f"DROP DATABASE IF EXISTS {_quoted(name)} WITH (FORCE)")

    def log(self) -> str:
        """What the server has logged so far."""
        return (self.root / "log").read_text(encoding="utf-8", errors="replace")

    def _execute(self, sql: str) -> None:
        import asyncpg

        async def run() -> None:
            connection = await asyncpg.connect(self.socket_dsn())
            try:
                await connection.execute(sql)
            finally:
                await connection.close()

        _run_elsewhere(run())


def shared_server(tmp_root: Path, settings: Mapping[str, str] | None = None) -> PostgresServer:
    """The one server of all processes that name the same folder: the first starts it, the last stops it.

    Args:
        tmp_root: a folder known to all of them, such as pytest's base temp folder; it holds the lock and the
            address, not the data.
        settings: as for `PostgresServer.start`; only those of the first caller count.

    Raises:
        PostgresNotFound: there are no server programs on this machine.
        PostgresStartFailed: they do not come up.
    """
    lock_file, state_file = tmp_root / "postgres.lock", tmp_root / "postgres.json"
    with _locked(lock_file):
        server = _join(lock_file, state_file)
        if server is None:
            server = PostgresServer._launch(None, settings, shared=tmp_root)  # noqa: SLF001 - same module
            state_file.write_text(
                json.dumps({"root": str(server.root), "port": server.port}),
                encoding="utf-8",
            )
        return server


def _join(lock_file: Path, state_file: Path) -> PostgresServer | None:
    """Become one more user of the running server, if there is one."""
    try:
        state = json.loads(state_file.read_text(encoding="utf-8"))
        root = Path(state["root"])
        hold_fd = os.open(root / "holders", os.O_WRONLY | os.O_NONBLOCK)
    except OSError:
        # No state, no FIFO, or nobody reading from it: there was a server, killed with its supervisor.
        return None
    return PostgresServer(root, int(state["port"]), lock_file, hold_fd)


def _run_supervisor(spec: Mapping[str, Any], holders_fd: int) -> None:
    """Start the supervisor and wait for its answer. Raises PostgresStartFailed."""
    # PG* variables of the person at the keyboard must not reach a test server.
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PG")}
    with Path(spec["log_file"]).open("ab") as log:
        process = subprocess.Popen(  # noqa: S603 - our own script
            [sys.executable, "-I", "-S", str(SUPERVISOR), json.dumps(spec)],
            stdin=holders_fd,
            stdout=subprocess.PIPE,
            stderr=log,
            env={**environment, "LC_ALL": "C", "TZ": "UTC"},
        )
    with process:  # it forks and exits at once; the fork answers
        assert process.stdout is not None  # noqa: S101 - asked for as a pipe above
        answer = _read_all(process.stdout.fileno(), START_SECONDS)
    if answer != b"ready":
        reason = answer.decode(errors="replace").removeprefix("failed\n").strip()
        raise PostgresStartFailed(f"PostgreSQL did not start: {reason or 'no answer from its supervisor'}")


def _read_all(fd: int, seconds: float) -> bytes:
    """Read until the other side closes; what came so far when the time is over."""
    deadline, parts = time.monotonic() + seconds, []
    while (left := deadline - time.monotonic()) > 0 and select.select([fd], [], [], left)[0]:
        part = os.read(fd, 65536)
        if not part:
            break
        parts.append(part)
    return b"".join(parts)


def _initdb_command(programs: Path, data: Path) -> list[str]:
    options = ["--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync", f"--username={SUPERUSER}"]
    return [str(programs / "initdb"), f"--pgdata={data}", *options]


def _postgres_command(
    programs: Path,
    data: Path,
    sockets: Path,
    port: int,
    settings: Mapping[str, str] | None,
) -> list[str]:
    fixed = {"listen_addresses": "127.0.0.1", "port": str(port), "unix_socket_directories": str(sockets)}
    merged = {**DEFAULT_SETTINGS, **(settings or {}), **fixed}
    options = [word for key, value in merged.items() for word in ("-c", f"{key}={value}")]
    return [str(programs / "postgres"), "-D", str(data), *options]


def _make_root(base: Path | None) -> Path:
    """A folder of our own that other users can pass through, at a path short enough for a socket."""
    parents = [base] if base is not None else [Path(tempfile.gettempdir()), Path("/tmp")]  # noqa: S108
    for parent in parents:
        root = Path(tempfile.mkdtemp(prefix="rtp-pg-", dir=parent))
        root.chmod(0o755)
        if len(os.fsencode(root / "run" / ".s.PGSQL.65535")) <= SOCKET_PATH_LIMIT:
            return root
        root.rmdir()
    raise PostgresStartFailed(
        f"the path of {parents[0]} is too long for a unix socket: name a shorter folder",
    )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _has_holders(fifo: Path) -> bool:
    """Whether anyone holds the FIFO open for writing."""
    try:
        fd = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    except FileNotFoundError:
        return False  # the server has died before, and its folder with it
    try:
        return os.read(fd, 1) != b""
    except BlockingIOError:
        return True
    finally:
        os.close(fd)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a file lock against other processes and threads; the kernel frees it when a holder dies."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def _quoted(identifier: str) -> str:
    return '"' + identifier.replace('"', '""') + '"'


def _run_elsewhere(work: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine to its end on a thread of its own: the caller's thread may have a loop running."""
    with ThreadPoolExecutor(max_workers=1) as pool:
        pool.submit(asyncio.run, work).result()


def _forget_in_child() -> None:
    for server in list(_held):
        server._forget()  # noqa: SLF001 - same module


os.register_at_fork(after_in_child=_forget_in_child)
