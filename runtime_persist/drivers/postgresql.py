"""PostgreSQL: raw asyncpg on one private event loop thread.

A hot command is one statement: Bind, Execute, Sync, and its reply. SQLAlchemy writes the statements once and is not
on this path (the same statements through it cost 1.3 to 3.5 times as much).

Nothing is kept in a database session: no setting, no session lock, no LISTEN, no temporary table. So it does not
matter which session a pooler gives us, and a lost one is replaced without anybody noticing.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, TypeVar

from runtime_persist.dialects.url import asyncpg_address
from runtime_persist.drivers.base import Driver, Hook, Job, Mode, arrays_of
from runtime_persist.drivers.postgresql_pool import CONNECTIONS_MAX, CannotConnect, Connection, Pool, RepeatJob
from runtime_persist.errors import Closed, ConnectionLost, RuntimePersistError
from runtime_persist.plan import BundleCall, Call, Outcome, Plan, Row, Step

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from runtime_persist.dialects import DatabaseUrl, Dialect

R = TypeVar("R")

# Each connection can be spent once, by a migration or a farewell, and names can end once.
_REPEATS_MAX = CONNECTIONS_MAX + 1
_LONGEST_WAIT_TRY = 4  # from here on the pauses for a server that cannot be reached do not grow


class PostgresDriver(Driver):
    """Runs jobs on one PostgreSQL database."""

    def __init__(self, url: DatabaseUrl, dialect: Dialect, hook: Hook | None = None) -> None:
        """Start the loop thread; connections are opened when they are needed."""
        super().__init__(url, dialect, hook)
        dsn, self._connect_timeout = asyncpg_address(url.location)
        self._loop = asyncio.new_event_loop()
        self._pool = Pool(dsn, self._connect_timeout)
        # Commands that wait for a locked row can use up the pool; a lease must be renewed all the same.
        self._urgent = Pool(dsn, self._connect_timeout, size=1)
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
        await self._pool.close()
        await self._urgent.close()

    async def _attempts(self, job: Job[R]) -> R:
        tries = 0
        maybe_committed = False
        until: float | None = None
        while True:
            try:
                return await self._once(job, until)
            except RuntimePersistError:
                raise
            except _Broken as broken:
                maybe_committed |= broken.maybe_committed
                native: BaseException = broken.native
            except Exception as failed:  # noqa: BLE001 (classified just below)
                native = failed
            if isinstance(native, CannotConnect):
                until = until or native.began + self._connect_timeout
                error, pause = self._unreachable(native.native, job, tries, until)
                native = native.native
            else:
                until = None
                error = self.dialect.classify(native)
                pause = job.delay(error, tries)
            if pause is None:
                raise job.surrender(error, maybe_committed) from native
            tries += 1
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), pause)
            if self._closing.is_set():
                raise job.surrender(error, maybe_committed) from native

    def _unreachable(
        self, native: BaseException, job: Job[R], tries: int, until: float
    ) -> tuple[RuntimePersistError, float | None]:
        """Return what a failure to connect means, and the seconds to wait before the next try.

        A server that cannot be reached is waited for as long as connecting may last: it may be starting again.
        """
        error = self.dialect.classify(native)
        if not isinstance(error, ConnectionLost):
            return error, job.delay(error, tries)
        why = f"{type(native).__name__}: {native}".removesuffix(": ")
        error = ConnectionLost(f"cannot connect to {self.url.shown} within {self._connect_timeout:g} s ({why})")
        left = until - time.monotonic()
        pause = job.delay(error, min(tries, _LONGEST_WAIT_TRY)) if left > 0 else None
        return error, None if pause is None else min(pause, left)

    async def _once(self, job: Job[R], until: float | None) -> R:
        repeats = 0
        pool = self._urgent if job.urgent else self._pool
        while True:
            try:
                async with pool.connection(until) as connection:
                    if job.mode in {Mode.HOT, Mode.READ}:
                        return await self._drive(connection, job)
                    return await self._in_transaction(connection, job)
            except RepeatJob as again:
                repeats += 1
                if repeats > _REPEATS_MAX:
                    raise again.native from again

    async def _in_transaction(self, connection: Connection, job: Job[R]) -> R:
        reads = job.mode is Mode.SNAPSHOT
        if not reads:
            self.reached(f"{job.name}:before:begin")
        await connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY" if reads else "BEGIN")
        try:
            result = await self._drive(connection, job)
        except BaseException:
            with contextlib.suppress(Exception):  # a connection that cannot roll back is thrown away
                await connection.execute("ROLLBACK")
            raise
        if not reads:
            self.reached(f"{job.name}:before:commit")
        try:
            await connection.execute("COMMIT")
        except RepeatJob:
            raise
        except Exception as native:
            raise _Broken(native, maybe_committed=not reads) from native
        if not reads:
            self.reached(f"{job.name}:after:commit")
        return result

    async def _drive(self, connection: Connection, job: Job[R]) -> R:
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

    async def _call(self, connection: Connection, job: Job[Any], call: Call) -> list[Row]:
        compiled = self.dialect.query(call.query)
        if job.mode.writes:
            self.reached(f"{job.name}:before:{compiled.name}")
        return [dict(row) for row in await connection.fetch(compiled, call.params)]

    async def _bundle(self, connection: Connection, job: Job[Any], call: BundleCall) -> Outcome:
        whole = self.dialect.bundle(call.bundle).whole
        if whole is None:
            raise Closed  # a dialect without whole bundles never meets this driver
        self.reached(f"{job.name}:before:{whole.name}")
        try:
            (row,) = await connection.fetch(whole, arrays_of(call))
        except RepeatJob:
            raise
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
