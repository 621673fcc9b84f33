"""What the kill tests stand on: the fork server's other end, victims, and a database with a run on it."""

import asyncio
import os
import pickle
import select
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import asyncpg

from runtime_persist.commands.parts.spec import Command
from runtime_persist.coordinator import CommitCoordinator, CommitReceipt
from runtime_persist.dialects import Dialect, PostgresDialect, parse_url
from runtime_persist.drivers import open_driver
from runtime_persist.engine import Engine
from runtime_persist.model.ids import new_id
from runtime_persist.model.keys import SpaceKeys
from runtime_persist.testing.proxy import Hold, PostgresProxy, Statement, When
from tests.faults.victims import HEADER, receive, send

if TYPE_CHECKING:
    from collections import Counter

ROOT = Path(__file__).parents[2]
DEADLINE_SECONDS = 30.0
LEASE_SECONDS = 3_600.0
"""Leases end when a test ends them, never because a machine is slow."""


@dataclass
class Death:
    """What a victim told before it ended, and how it ended (negative: the signal)."""

    status: int
    reached: list[str] = field(default_factory=list)
    acknowledged: list[CommitReceipt] = field(default_factory=list)
    error: str = ""
    told: list[tuple[str, Any]] = field(default_factory=list)


class Victim:
    """A process forked from the server."""

    def __init__(self, server: "ForkServer", pid: int, reading: int) -> None:
        self.pid = pid
        self._server = server
        self._reading = reading
        self._data = b""
        self._told: list[tuple[str, Any]] = []

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)  # never somebody else: the server has not reaped it yet

    def wait_for(self, kind: str) -> Any:
        """Wait until it tells something of this kind."""
        while True:
            for found, value in self._told:
                if found == kind:
                    return value
                if found == "error":
                    raise AssertionError(f"the victim failed:\n{value}")
            assert self._read(), f"the victim ended without telling {kind}"

    def wait(self) -> Death:
        """Wait for its end."""
        while self._read():
            pass
        os.close(self._reading)
        death = Death(self._server.reap(self.pid), told=self._told)
        for kind, value in self._told:
            if kind == "reached":
                death.reached.append(value)
            elif kind == "acknowledged":
                death.acknowledged.append(value)
            elif kind == "error":
                death.error = value
        return death

    def _read(self) -> bool:
        ready, _, _ = select.select([self._reading], [], [], DEADLINE_SECONDS)
        if not ready:
            self.kill()
            raise AssertionError(f"the victim stands still; it told {self._told}")
        part = os.read(self._reading, 65536)
        self._data += part
        while len(self._data) >= HEADER.size:
            (size,) = HEADER.unpack(self._data[: HEADER.size])
            if len(self._data) < HEADER.size + size:
                break
            frame, self._data = self._data[HEADER.size : HEADER.size + size], self._data[HEADER.size + size :]
            self._told.append(pickle.loads(frame))  # noqa: S301 (ours)
        return bool(part)


class ForkServer:
    """The warm process. The tests' own process is never forked: it has threads."""

    def __init__(self, *modules: str) -> None:
        self._channel, theirs = socket.socketpair()
        command = [sys.executable, "-m", "tests.faults.victims", str(theirs.fileno()), *modules]
        self._process = subprocess.Popen(command, cwd=ROOT, pass_fds=[theirs.fileno()])
        theirs.close()
        assert receive(self._channel) == ("ready", [])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._channel.close()
        self._process.wait()

    def fork(self, program: str, args: dict[str, Any], kill_at: str | None = None, nth: int = 1) -> Victim:
        send(self._channel, ("fork", {"program": program, "args": args, "kill_at": kill_at, "nth": nth}))
        received = receive(self._channel)
        assert received is not None
        pid, (reading,) = received
        return Victim(self, pid, reading)

    def reap(self, pid: int) -> int:
        send(self._channel, ("reap", pid))
        received = receive(self._channel)
        assert received is not None
        status: int = received[0]
        return status


# --- the databases --------------------------------------------------------------------------------------------------


@dataclass
class Stage:
    """A thread on a database, prepared up to the command under test.

    Attributes:
        url: where a victim connects.
        thread_id: the thread.
        engine: of the second process.
        expire: lets the leases of a run end.

    """

    url: str
    thread_id: str
    engine: Engine
    expire: Callable[[str], None]
    prepared: Any = None

    def args(self, command: Command) -> dict[str, Any]:
        """The arguments of a victim that sends this command."""
        keys = self.engine.coordinator.keys
        return {"url": self.url, "space": keys.space, "secret": keys.secret, "command": command}


Prepare = Callable[[Stage], Any]


class SqliteLab:
    """A file a case, copied from one that was prepared once."""

    dialect_name = "sqlite"

    def __init__(self, folder: Path, migrated: Path) -> None:
        """Work in a folder, on copies of a file with tables and nothing else."""
        self._folder = folder
        self._migrated = migrated
        self._prepared: dict[str, tuple[Path, Any]] = {}
        self.traces: dict[str, Counter[str]] = {}
        self._cases = 0

    @contextmanager
    def stage(self, name: str, prepare: Prepare) -> Iterator[Stage]:
        if name not in self._prepared:
            template = self._folder / f"{name}.template"
            shutil.copyfile(self._migrated, template)
            with self._open(template) as stage:
                self._prepared[name] = (template, prepare(stage))
        template, prepared = self._prepared[name]
        self._cases += 1
        case = self._folder / f"{self._cases}.db"
        shutil.copyfile(template, case)
        with self._open(case) as stage:
            stage.prepared = prepared
            yield stage
        case.unlink()

    @contextmanager
    def _open(self, path: Path) -> Iterator[Stage]:
        def expire(run_id: str) -> None:
            with sqlite3.connect(path) as connection:
                connection.execute("UPDATE rp_runs SET expires_us = 0 WHERE run_id = ?", (run_id,))
            connection.close()

        engine = Engine(f"sqlite:///{path}", lease_ttl=LEASE_SECONDS)
        try:
            yield Stage(f"sqlite:///{path}", "thread", engine, expire)
        finally:
            engine.close()

    def settle(self) -> None:
        """A dead process holds nothing in a file."""


class PostgresLab:
    """One database for all cases, a thread each; victims go through a proxy, the second process does not."""

    dialect_name = "postgresql"

    def __init__(self, dsn: str, proxy: PostgresProxy) -> None:
        self.proxy = proxy
        self.dsn = dsn
        self.traces: dict[str, Counter[str]] = {}
        self.victim_url = proxy.dsn(dsn) + "&application_name=victim&connect_timeout=1"
        self.engine = Engine(dsn, lease_ttl=LEASE_SECONDS)
        self.dialect: Dialect = PostgresDialect()
        self._runner = asyncio.Runner()
        self._admin = self._runner.run(asyncpg.connect(dsn))
        self._holder = self._runner.run(asyncpg.connect(dsn))

    def close(self) -> None:
        for connection in (self._admin, self._holder):
            self._runner.run(connection.close())
        self._runner.close()
        self.engine.close()

    @contextmanager
    def stage(self, name: str, prepare: Prepare) -> Iterator[Stage]:
        def expire(run_id: str) -> None:
            self.execute("UPDATE rp_runs SET expires_us = 0 WHERE run_id = $1", run_id)

        stage = Stage(self.victim_url, f"{name} {new_id()}", self.engine, expire)
        stage.prepared = prepare(stage)
        yield stage
        # They belong to the space, so that every later case would read them.
        self.execute("DELETE FROM rp_blobs")
        self.execute("DELETE FROM rp_receipts")

    @contextmanager
    def coordinator(self, keys: SpaceKeys) -> Iterator[CommitCoordinator]:
        """A coordinator of this process that reaches the server through the proxy."""
        coordinator = CommitCoordinator(open_driver(parse_url(self.victim_url), self.dialect), keys)
        try:
            yield coordinator
        finally:
            coordinator.close()

    def execute(self, sql: str, *args: Any) -> Any:
        return self._runner.run(self._admin.fetch(sql, *args))

    def settle(self) -> None:
        """Wait until the server has noticed that the victim is gone."""
        self._until("SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name = 'victim' AND {here}")

    def wait_for_lock(self) -> None:
        """Wait until the victim's statement waits for a lock."""
        self._until(
            "SELECT count(*) > 0 FROM pg_stat_activity"
            " WHERE application_name = 'victim' AND wait_event_type = 'Lock' AND {here}"
        )

    def _until(self, question: str) -> None:
        sql = question.format(here="datname = current_database()")
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not self.execute(sql)[0][0]:
            assert time.monotonic() < deadline, f"never true: {sql}"

    @contextmanager
    def locked(self, table: str, column: str, value: str) -> Iterator[None]:
        """Hold the lock of a row until the end of the block."""
        self._runner.run(self._holder.execute("BEGIN"))
        sql = f"SELECT 1 FROM {table} WHERE {column} = $1 FOR UPDATE"
        found = self._runner.run(self._holder.fetch(sql, value))
        try:
            assert found, f"no row of {table} to lock"
            yield
        finally:
            self._runner.run(self._holder.execute("COMMIT"))

    def hold(self, when: When, wanted: Callable[[Statement], bool], nth: int = 1) -> Hold:
        """Hold the ``nth`` exchange of a statement."""
        seen = 0

        def match(statement: Statement) -> bool:
            nonlocal seen
            found = wanted(statement)
            seen += found
            return found and seen == nth

        return self.proxy.hold(when, match)
