"""Real processes: forked from a server that has imported everything and opened nothing."""

import contextlib
import multiprocessing
import os
import signal
import sqlite3
import subprocess
import traceback
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from tests.fixtures.raw import PostgresRaw, Raw, SqliteRaw, wait_until

DEADLINE_SECONDS = 30.0
_LOCK_ALL_RUNS = {
    SqliteRaw: ("PRAGMA busy_timeout = 50", "BEGIN IMMEDIATE", "ROLLBACK"),
    PostgresRaw: ("SELECT 1 FROM rp_runs FOR UPDATE NOWAIT",),
}
_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["tests.support.programs", "tests.support.command_line"])


class Word:
    """The child's end: says things to its test, and waits for the word to go on."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def say(self, *what: Any) -> None:
        self._connection.send(what)

    def wait(self) -> Any:
        """Wait until the test gives the word."""
        return self._connection.recv()


def _main(connection: Connection, program: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> None:
    word = Word(connection)
    try:
        word.say("returned", program(word, *args, **options))
    except BaseException as error:  # noqa: BLE001 (the test is told)
        word.say("raised", getattr(error, "code", type(error).__name__), str(error), traceback.format_exc())


class Child:
    """A process that runs one program."""

    def __init__(
        self,
        program: Callable[..., Any],
        args: tuple[Any, ...],
        options: dict[str, Any],
        environment: dict[str, str] | None = None,
    ) -> None:
        """Start it; with variables of its own it is not forked but begins with the interpreter."""
        context: Any = _context if environment is None else multiprocessing.get_context("spawn")
        self._ours, theirs = context.Pipe()
        self._process = context.Process(target=_main, args=(theirs, program, args, options))
        with pytest.MonkeyPatch.context() as patch:
            for name, value in (environment or {}).items():
                patch.setenv(name, value)
            self._process.start()
        theirs.close()

    def hears(self) -> tuple[Any, ...]:
        """Return the next thing it says."""
        if not self._ours.poll(DEADLINE_SECONDS):
            msg = f"process {self._process.pid} says nothing"
            raise AssertionError(msg)
        said: tuple[Any, ...] = self._ours.recv()
        return said

    def until(self, what: str) -> tuple[Any, ...]:
        """Wait for it to say this (it may say other things first)."""
        while True:
            said = self.hears()
            if said[0] == what:
                return said[1:]
            assert said[0] != "raised", said[-1]

    def give_the_word(self, what: Any = None) -> None:
        self._ours.send(what)

    def result(self) -> Any:
        """Wait for what its program returns."""
        (value,) = self.until("returned")
        self.ended()
        return value

    def result_only(self) -> Any:
        """Wait for what its program returns; the process may go on."""
        (value,) = self.until("returned")
        return value

    def outcome(self) -> tuple[Any, ...]:
        """Wait for ``("returned", value)`` or ``("raised", code, text, traceback)``."""
        while True:
            said = self.hears()
            if said[0] in {"returned", "raised"}:
                return said

    def send(self, number: signal.Signals) -> None:
        """Send it a signal."""
        if self._process.pid is not None and self._process.exitcode is None:
            with contextlib.suppress(ProcessLookupError):  # it ended by itself just now
                os.kill(self._process.pid, number)

    def stop_outside_transactions(self, raw: Raw) -> None:
        """SIGSTOP at a moment when it holds no lock of the database (a stopped process would keep it)."""

        def stopped() -> bool:
            self.send(signal.SIGSTOP)
            wait_until(self._all_threads_stopped, "it is stopped")
            try:
                for statement in _LOCK_ALL_RUNS[getattr(raw, "database", type(raw))]:
                    raw.rows(statement)
            except (sqlite3.OperationalError, asyncpg.LockNotAvailableError):
                self.send(signal.SIGCONT)
                return False
            return True

        wait_until(stopped, "a moment without locks")

    def _all_threads_stopped(self) -> bool:
        """The signal is only on its way when the kernel took it: threads run on for a moment."""
        threads = Path(f"/proc/{self._process.pid}/task")
        if threads.exists():
            states = [(thread / "stat").read_text().rpartition(")")[2].split()[0] for thread in threads.iterdir()]
        else:
            command = ["/bin/ps", "-o", "state=", "-p", str(self._process.pid)]
            states = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
        return all(state.startswith("T") for state in states)

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        self.send(signal.SIGKILL)
        self.ended()

    def ended(self) -> int | None:
        """Wait for its end and return its exit code (negative: the signal)."""
        self._process.join(DEADLINE_SECONDS)
        return self._process.exitcode

    def close(self) -> None:
        self.kill()
        self._ours.close()
        self._process.close()


@contextlib.contextmanager
def forks() -> Iterator[Callable[..., Child]]:
    """Start children; whatever is left of them ends with the block.

    ``environment``: variables that a child's interpreter begins with.
    """
    started: list[Child] = []

    def start(
        program: Callable[..., Any], *args: Any, environment: dict[str, str] | None = None, **options: Any
    ) -> Child:
        started.append(Child(program, args, options, environment))
        return started[-1]

    try:
        yield start
    finally:
        for child in started:
            child.close()
