"""PostgreSQL: raw asyncpg on one private event loop thread.

A hot command is one statement: Bind, Execute, Sync, and its reply. SQLAlchemy writes the statements once and is not
on this path (the same statements through it cost 1.3 to 3.5 times as much).

Statement names are the hash of their text: behind a transaction pooler a counter name could run another process's
statement (design-review R7).
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, TypeVar

import asyncpg

from runtime_persist.dialects.url import asyncpg_address
from runtime_persist.drivers.base import Driver, Hook, Job, Mode, arrays_of
from runtime_persist.errors import Closed, RuntimePersistError
from runtime_persist.plan import BundleCall, Call, Outcome, Plan, Row, Step

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping, Sequence

    from runtime_persist.dialects import Compiled, DatabaseUrl, Dialect

R = TypeVar("R")

_CONNECTIONS_MAX = 10
# Array codecs are looked up in the catalogue at first use: done when a connection opens, not inside a command.
_WARM_UP = "select $1::text[], $2::bytea[], $3::bigint[]"


class _Connection:
    """A connection and the statements prepared on it."""

    def __init__(self, raw: asyncpg.Connection[Any]) -> None:
        self.raw = raw
        self._statements: dict[str, Any] = {}

    async def fetch(self, compiled: Compiled, params: Mapping[str, Any]) -> Sequence[Any]:
        statement = self._statements.get(compiled.server_name)
        if statement is None:
            statement = await self.raw.prepare(compiled.sql, name=compiled.server_name)
            self._statements[compiled.server_name] = statement
        filled = compiled.filled(params)
        rows: Sequence[Any] = await statement.fetch(*[filled[name] for name in compiled.order])
        return rows


class PostgresDriver(Driver):
    """Runs jobs on one PostgreSQL database."""

    def __init__(self, url: DatabaseUrl, dialect: Dialect, hook: Hook | None = None) -> None:
        """Start the loop thread; connections are opened when they are needed."""
        super().__init__(url, dialect, hook)
        self._dsn, self._connect_timeout = asyncpg_address(url.location)
        self._loop = asyncio.new_event_loop()
        self._free: deque[_Connection] = deque()
        self._slots = asyncio.Semaphore(_CONNECTIONS_MAX)
        self._closing = asyncio.Event()
        self._thread = threading.Thread(target=self._serve, name="runtime-persist-postgresql", daemon=True)
        self._thread.start()

    def submit(self, job: Job[R]) -> Future[R]:
        """Run a job on the loop thread."""
        self.check_usable()
        with self._gate:
            self.check_usable()
            return self._hand_over(self._attempts(job))

    def close(self) -> None:
        """Let running jobs finish, then close the connections and stop the loop."""
        if not self.begin_to_close():
            return
        self._hand_over(self._shut_down()).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    def _hand_over(self, work: Coroutine[Any, Any, R]) -> Future[R]:
        """Run ``work`` on the loop. The future cannot be cancelled: what was sent goes on to its end."""
        future: Future[R] = Future()
        future.set_running_or_notify_cancel()

        async def to_its_end() -> None:
            try:
                result = await work
            except BaseException as error:  # noqa: BLE001 (whatever it is belongs to the caller)
                future.set_exception(error)
            else:
                future.set_result(result)

        asyncio.run_coroutine_threadsafe(to_its_end(), self._loop)
        return future

    async def _shut_down(self) -> None:
        self._closing.set()  # whoever waits to try again gives up
        others = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.gather(*others, return_exceptions=True)
        while self._free:
            await self._free.pop().raw.close()

    async def _attempts(self, job: Job[R]) -> R:
        tries = 0
        maybe_committed = False
        while True:
            try:
                async with self._slots:
                    return await self._once(job)
            except RuntimePersistError:
                raise
            except _Broken as broken:
                maybe_committed |= broken.maybe_committed
                native: BaseException = broken.native
            except Exception as failed:  # noqa: BLE001 (classified just below)
                native = failed
            error = self.dialect.classify(native)
            pause = job.delay(error, tries)
            if pause is None:
                raise job.surrender(error, maybe_committed) from native
            tries += 1
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), pause)
            if self._closing.is_set():
                raise job.surrender(error, maybe_committed) from native

    async def _once(self, job: Job[R]) -> R:
        connection = await self._acquire()
        try:
            if job.mode in {Mode.HOT, Mode.READ}:
                return await self._drive(connection, job)
            return await self._in_transaction(connection, job)
        finally:
            if connection.raw.is_closed() or connection.raw.is_in_transaction():
                connection.raw.terminate()
            else:
                self._free.append(connection)

    async def _acquire(self) -> _Connection:
        while self._free:
            connection = self._free.pop()  # the most recently used one is the least likely to have been dropped
            if not connection.raw.is_closed():
                return connection
        raw = await asyncpg.connect(self._dsn, statement_cache_size=0, timeout=self._connect_timeout)
        await raw.fetch(_WARM_UP, [], [], [])
        return _Connection(raw)

    async def _in_transaction(self, connection: _Connection, job: Job[R]) -> R:
        reads = job.mode is Mode.SNAPSHOT
        if not reads:
            self.reached(f"{job.name}:before:begin")
        await connection.raw.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY" if reads else "BEGIN")
        try:
            result = await self._drive(connection, job)
        except BaseException:
            if not connection.raw.is_closed():
                await connection.raw.execute("ROLLBACK")
            raise
        if not reads:
            self.reached(f"{job.name}:before:commit")
        try:
            await connection.raw.execute("COMMIT")
        except Exception as native:
            raise _Broken(native, maybe_committed=not reads) from native
        if not reads:
            self.reached(f"{job.name}:after:commit")
        return result

    async def _drive(self, connection: _Connection, job: Job[R]) -> R:
        plan: Plan[R] = job.plan()
        try:
            step: Step = next(plan)
            while True:
                if isinstance(step, Call):
                    step = plan.send(await self._call(connection, job, step))
                else:
                    step = plan.send(await self._bundle(connection, job, step))
        except StopIteration as done:
            result: R = done.value
            return result

    async def _call(self, connection: _Connection, job: Job[Any], call: Call) -> list[Row]:
        compiled = self.dialect.query(call.query)
        if job.mode.writes:
            self.reached(f"{job.name}:before:{compiled.name}")
        return [dict(row) for row in await connection.fetch(compiled, call.params)]

    async def _bundle(self, connection: _Connection, job: Job[Any], call: BundleCall) -> Outcome:
        whole = self.dialect.bundle(call.bundle).whole
        if whole is None:
            raise Closed  # a dialect without whole bundles never meets this driver
        self.reached(f"{job.name}:before:{whole.name}")
        try:
            (row,) = await connection.fetch(whole, arrays_of(call))
        except Exception as native:
            raise _Broken(native, maybe_committed=job.mode is Mode.HOT) from native
        return _outcome(call, row)


class _Broken(Exception):
    """A statement or COMMIT failed; ``maybe_committed``: the server may have committed all the same."""

    def __init__(self, native: BaseException, *, maybe_committed: bool) -> None:
        super().__init__(str(native))
        self.native = native
        self.maybe_committed = maybe_committed


def _outcome(call: BundleCall, row: Any) -> Outcome:
    counts: dict[str, int] = {}
    values: dict[str, Row] = {}
    for fragment in call.bundle.fragments:
        counts[fragment.name] = count = row[f"{fragment.name}__count"]
        if fragment.returns and count:
            values[fragment.name] = {name: row[f"{fragment.name}__{name}"] for name in fragment.returns}
    return Outcome(counts, values)
