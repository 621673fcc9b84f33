"""SQLite: one writing connection under one lock, reads on connections of their own.

Whoever holds the lock commits what is queued: the writer thread for callers on an event loop; a caller that would only
wait does it itself when the lock is free, and takes the queue along (a thread hand-over costs more than the
transaction). Reads by key are done where they are asked for: they wait for nobody.

Between processes ``BEGIN IMMEDIATE`` is the lock. While another process holds it, a command waits for as long as
``timeout`` in the URL says, counted from when it was sent; then it fails with StoreBusy and nothing is written. Between
commands no lock is held. A command is acknowledged after COMMIT with ``synchronous=FULL``: what was acknowledged
survives a power cut.

Group commit: what queued while one transaction was being committed is committed together by the next. When one of them
is refused it is all done again with each command in a savepoint of its own: it takes nothing of its neighbours with it.
"""

from __future__ import annotations

import queue
import socket
import sqlite3
import threading
import time
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

from runtime_persist.dialects.url import MEMORY
from runtime_persist.drivers import sqlite_wal
from runtime_persist.drivers.base import Driver, Hook, Job, caller
from runtime_persist.drivers.futures import Pending, Settled
from runtime_persist.drivers.socket_bus import SocketBus
from runtime_persist.drivers.sqlite_plan import PlanRunner
from runtime_persist.errors import DatabaseUnavailable, RuntimePersistError, StoreBusy
from runtime_persist.model import limits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runtime_persist.dialects import DatabaseUrl, Dialect
    from runtime_persist.drivers.bus import Bus

R = TypeVar("R")

_READERS = 2
_BUSY_TIMEOUT_SECONDS = 10.0
_ONE_WAIT_SECONDS = 0.5  # SQLite itself waits this long for a lock; then it is asked again until the time is over
_WAL_PAUSE_SECONDS = 0.01
_WAL_BYTES_KEPT = 4 * 1024 * 1024  # a log that grew while somebody read for long is cut back to this
_STATEMENTS_CACHED = 256
_GATHER_JOBS = 32
_GATHER_SECONDS = 0.0003  # about what it takes a caller to make its next command
_BATCH_JOBS_MAX = 128
_READERS_KEPT = 16

_Item = tuple[Job[Any], float, Future[Any]]


@lru_cache(maxsize=8)
def _made_by(sql: str) -> bytes | None:
    """Return the pages of a database that a script made: they are copied in a tenth of the time the script takes.

    None: this SQLite was built without what copies them (``SQLITE_OMIT_DESERIALIZE``).
    """
    if not hasattr(sqlite3.Connection, "serialize"):
        return None
    made = sqlite3.connect(MEMORY)
    try:
        made.executescript(sql)
        return made.serialize()
    finally:
        made.close()


class _Refused(Exception):
    """A job in a common transaction was refused."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


class SqliteDriver(Driver):
    """Runs jobs on one SQLite file (or on a private in-memory database)."""

    def __init__(self, url: DatabaseUrl, dialect: Dialect, hook: Hook | None = None) -> None:
        """Open the file and start the writer thread.

        Raises:
            DatabaseUnavailable: SQLite older than 3.37, or a file that cannot be opened.

        """
        super().__init__(url, dialect, hook)
        if sqlite3.sqlite_version_info < limits.SQLITE_VERSION_MIN:
            wanted = ".".join(map(str, limits.SQLITE_VERSION_MIN))
            msg = f"SQLite {sqlite3.sqlite_version} is too old; {wanted} or later is needed"
            raise DatabaseUnavailable(msg)
        self._memory = url.location == MEMORY
        self._timeout = float(url.parameters.get("timeout", _BUSY_TIMEOUT_SECONDS))
        try:
            self._writer = self._connect()
        except sqlite3.Error as error:
            raise dialect.classify(error) from error
        if not self._memory and sqlite_wal.used_by_others(url.location):
            sqlite_wal.warn_once(url.location)
        self._runner = PlanRunner(dialect, None if hook is None else self.reached)
        self._queue: deque[_Item] = deque()
        self._last_batch = 0
        self._writing = threading.Lock()  # whoever holds it is the writer
        self._wake: queue.SimpleQueue[bool] = queue.SimpleQueue()
        self._free: deque[sqlite3.Connection] = deque()  # reading connections that nobody uses
        self._readers = None if self._memory else ThreadPoolExecutor(_READERS, "runtime-persist-read")
        self._thread = threading.Thread(target=self._work, name="runtime-persist-write", daemon=True)
        self._thread.start()

    def submit(self, job: Job[R]) -> Future[R]:
        """Run a job here and now where that is best, else queue it for the writing or a reading thread."""
        self.check_usable()
        if not job.mode.writes and self._readers is not None:
            return self._read(job, self._readers)
        if caller.waits and self._writing.acquire(blocking=False):
            return self._lead(job)
        future: Future[R] = Pending()
        with self._gate:
            self.check_usable()
            self._queue.append((job, time.monotonic(), future))
        # Who finds the lock taken leaves the job to its holder, who looks into the queue again behind the lock.
        if self._writing.acquire(blocking=False):
            self._writing.release()
            self._wake.put(True)
        return future

    def open_bus(self) -> Bus | None:
        """Return sockets beside the file, where the system has such."""
        return None if self._memory or not hasattr(socket, "AF_UNIX") else SocketBus(self.url.location)

    def script(self, sql: str) -> None:
        """Create the tables of a private in-memory database, before anything else uses it."""
        self.check_usable()
        made = _made_by(sql)
        if made is None:
            self._writer.executescript(sql)
            return
        source = sqlite3.connect(MEMORY)
        try:
            source.deserialize(made)
            source.backup(self._writer)  # deserialized itself, the writer could not grow beyond a gigabyte
        finally:
            source.close()

    def close(self) -> None:
        """Run what is queued, then close all connections."""
        if not self.begin_to_close():
            return
        self._wake.put(False)
        self._thread.join()
        if self._readers is not None:
            self._readers.shutdown(wait=True)
        with self._writing:  # somebody may be leading still
            for connection in [*self._free, self._writer]:
                connection.close()

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self.url.location,
            timeout=min(self._timeout, _ONE_WAIT_SECONDS),
            isolation_level=None,
            check_same_thread=False,
            cached_statements=_STATEMENTS_CACHED,
        )
        connection.row_factory = sqlite3.Row
        until = time.monotonic() + self._timeout
        while True:
            try:
                connection.execute("PRAGMA journal_mode=WAL")
                break
            except sqlite3.Error as error:
                # A new file is put into WAL mode once, which needs it for oneself and does not always wait by itself.
                if self.dialect.classify(error).kind != "retry" or time.monotonic() > until:
                    connection.close()
                    raise
                time.sleep(_WAL_PAUSE_SECONDS)
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute(f"PRAGMA journal_size_limit={_WAL_BYTES_KEPT}")
        connection.execute("PRAGMA mmap_size=0")  # mapped pages made the WAL-reset fault worse
        return connection

    # --- reading ----------------------------------------------------------------------------------------------------

    def _read(self, job: Job[R], readers: ThreadPoolExecutor) -> Future[R]:
        sent = time.monotonic()
        if caller.waits or job.brief:
            try:
                return Settled(self._once(job))
            except sqlite3.Error:
                pass  # busy, most likely: a thread that may wait tries again
            except BaseException as error:  # noqa: BLE001 (whatever it is belongs to the caller)
                return Settled(error=error)
        with self._gate:
            self.check_usable()
            return readers.submit(self._attempts, job, sent)

    def _look(self, job: Job[R]) -> R:
        """Run a job that only reads, on a connection that is lent to it."""
        try:
            connection = self._free.pop()
        except IndexError:
            connection = self._connect()
        try:
            return self._transact(connection, job)
        finally:
            if self._closed or len(self._free) >= _READERS_KEPT:
                connection.close()
            else:
                self._free.append(connection)

    # --- writing ----------------------------------------------------------------------------------------------------

    def _work(self) -> None:
        """Commit what is queued, whenever somebody asks for it, until the driver is closed."""
        open_ = True
        while open_:
            open_ = self._wake.get()
            while self._queue:
                if open_:
                    self._gather()
                with self._writing:
                    self._commit_queued()

    def _gather(self) -> None:
        """Let others queue, as long as they do: of many callers each transaction shall take some along.

        One caller never waits here: only when the last transaction was of several is there anybody to wait for.
        """
        wanted = min(self._last_batch, _GATHER_JOBS)
        while (queued := len(self._queue)) < wanted:
            time.sleep(_GATHER_SECONDS)
            if len(self._queue) <= queued:
                return

    def _lead(self, job: Job[R]) -> Future[R]:
        """Commit a job behind what is queued; the lock is held, and let go behind it."""
        try:
            self.check_usable()  # closing waits for the lock before it closes the connection
            if not self._queue:
                return self._commit_first(job)
            future: Future[R] = Pending()
            self._queue.append((job, time.monotonic(), future))
            self._commit_queued()
            return future
        finally:
            self._writing.release()
            if self._queue:
                self._wake.put(True)

    def _commit_first(self, job: Job[R]) -> Future[R]:
        """Commit a job that nobody else has anything queued before."""
        self._last_batch = 1
        try:
            result = self._attempts(job, time.monotonic())
        except Exception as error:  # noqa: BLE001 (whatever it is belongs to the caller)
            return Settled(error=error)
        except BaseException:  # interrupted (Ctrl-C): the writer thread brings it to its end
            self._queue.appendleft((job, time.monotonic(), Pending()))
            raise
        self.committed(1)
        return Settled(result)

    def _commit_queued(self) -> None:
        batch: list[_Item] = []
        try:
            while self._queue and len(batch) < _BATCH_JOBS_MAX:
                batch.append(self._queue.popleft())
            self._last_batch = len(batch)
            together = len(batch) > 1 and all(job.mode.writes for job, _, _ in batch)
            if not (together and self._commit_together(batch)):
                for item in batch:
                    self._commit_alone(*item)
        except BaseException:
            # The thread that leads was interrupted (Ctrl-C). What it took along is not its own: it goes back into the
            # queue, for the writer thread. What was committed already is found by its receipt.
            self._queue.extendleft(reversed([item for item in batch if not item[2].done()]))
            self._wake.put(True)
            raise

    def _commit_alone(self, job: Job[Any], sent: float, future: Future[Any]) -> None:
        if future.done():
            return
        try:
            result = self._attempts(job, sent)
        except Exception as error:  # noqa: BLE001 (whatever it is belongs to the caller)
            future.set_exception(error)
        else:
            future.set_result(result)
            self.committed(int(job.mode.writes))

    def _commit_together(self, batch: list[_Item]) -> bool:
        """Commit several jobs in one transaction; return False when nothing was written and each goes alone.

        Jobs are acknowledged after the COMMIT. What the database itself refuses is not told apart here: alone, a job
        is tried again, or fails, without its neighbours.
        """
        answers: list[tuple[Future[Any], Any, Exception | None]] = []
        try:
            try:
                with _Transaction(self, self._writer, [job for job, _, _ in batch]):
                    answers = [(future, self._drive(job), None) for job, _, future in batch]
            except _Refused:  # rare: then once more, with something to go back to in front of each
                with _Transaction(self, self._writer, [job for job, _, _ in batch]):
                    answers = [(future, *self._in_savepoint(job)) for job, _, future in batch]
        except sqlite3.Error:
            return False
        for future, result, error in answers:
            if error is None:
                future.set_result(result)
            else:
                future.set_exception(error)
        self.committed(sum(error is None for _, _, error in answers))
        return True

    def _drive(self, job: Job[R]) -> R:
        try:
            return self._runner.drive(self._writer, job)
        except sqlite3.Error:
            raise  # the transaction itself may be gone
        except Exception as error:
            raise _Refused(error) from error

    def _in_savepoint(self, job: Job[Any]) -> tuple[Any, Exception | None]:
        self._writer.execute("SAVEPOINT command")
        result, error = None, None
        try:
            result = self._drive(job)
        except _Refused as refused:
            error = refused.error
            self._writer.execute("ROLLBACK TO command")
        self._writer.execute("RELEASE command")
        return result, error

    def _attempts(self, job: Job[R], sent: float) -> R:
        while True:
            try:
                return self._once(job)
            except sqlite3.Error as native:
                error = self.dialect.classify(native)
                pause = job.delay(error, 0)
                if pause is not None and not self._memory:
                    sqlite_wal.warn_once(self.url.location)  # only another process or engine can keep us waiting
                if pause is None or time.monotonic() - sent >= self._timeout:
                    raise job.surrender(self._given_up(error), False) from native
            time.sleep(pause)

    def _given_up(self, error: RuntimePersistError) -> RuntimePersistError:
        if not isinstance(error, StoreBusy):
            return error
        msg = (
            f"another process kept {self.url.shown} locked for longer than {self._timeout:g} s; nothing was written; "
            "find the long transaction, or wait longer with timeout= in the URL"
        )
        return StoreBusy(msg, timeout=self._timeout)

    def _once(self, job: Job[R]) -> R:
        if job.mode.writes or self._memory:
            return self._transact(self._writer, job)  # its lock is held
        return self._look(job)

    def _transact(self, connection: sqlite3.Connection, job: Job[R]) -> R:
        with _Transaction(self, connection, (job,)):
            return self._runner.drive(connection, job)


class _Transaction:
    """A transaction of some jobs: committed behind the block, rolled back when that fails."""

    __slots__ = ("_begin", "_connection", "_cuts", "_reached")

    def __init__(self, driver: SqliteDriver, connection: sqlite3.Connection, jobs: Sequence[Job[Any]]) -> None:
        self._connection = connection
        self._begin = "BEGIN IMMEDIATE" if any(job.mode.writes for job in jobs) else "BEGIN"
        self._reached = driver.reached
        self._cuts = [job.name for job in jobs if job.mode.writes] if driver.hooked else ()

    def __enter__(self) -> None:
        if self._cuts:
            self._reach("before:begin")
        self._connection.execute(self._begin)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                if self._cuts:
                    self._reach("before:commit")
                self._connection.execute("COMMIT")
        finally:
            # A failed COMMIT leaves the transaction open: never hand it to the next job.
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        if self._cuts and kind is None:
            self._reach("after:commit")

    def _reach(self, cut: str) -> None:
        for name in self._cuts:
            self._reached(f"{name}:{cut}")
