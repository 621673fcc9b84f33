"""PostgreSQL: raw asyncpg on one private event loop thread.

A hot command is one statement: Bind, Execute, Sync, and its reply. SQLAlchemy writes the statements once and is not
on this path (the same statements through it cost 1.3 to 3.5 times as much).

Nothing that counts is kept in a database session: no setting but a hint to the planner, no session lock, no temporary
table, and LISTEN only for hints that may get lost (``drivers/postgresql_bus.py``). So it does not matter which session
a pooler gives us, and a lost one is replaced without anybody noticing.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import asyncpg

from runtime_persist.dialects.url import asyncpg_address
from runtime_persist.drivers import wakes
from runtime_persist.drivers.base import Driver, Hook, Job, Mode, arrays_of
from runtime_persist.drivers.eager import Tasks, in_task
from runtime_persist.drivers.futures import Pending
from runtime_persist.drivers.postgresql_batches import IN_FLIGHT_MAX, Answer, Batches, Item
from runtime_persist.drivers.postgresql_bus import PostgresBus
from runtime_persist.drivers.postgresql_pool import (
    CONNECTIONS_MAX,
    CannotConnect,
    Connection,
    Manners,
    Pool,
    RepeatJob,
    connect_to_listen,
)
from runtime_persist.errors import Closed, ConnectionLost, RuntimePersistError
from runtime_persist.model import limits
from runtime_persist.plan import BundleCall, Call, Outcome, Plan, Query, Row, Step, Together

if TYPE_CHECKING:
    from collections.abc import Sequence
    from concurrent.futures import Future

    from runtime_persist.dialects import DatabaseUrl, Dialect
    from runtime_persist.drivers.bus import Bus

R = TypeVar("R")

# Each connection can be spent once, by a migration or a farewell, and names can end once.
_REPEATS_MAX = CONNECTIONS_MAX + 1
_OF_SINGLE_STATEMENTS = frozenset({Mode.HOT, Mode.READ})
_BEGIN_READING = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_LONGEST_WAIT_TRY = 4  # from here on the pauses for a server that cannot be reached do not grow


def begin_writing() -> str:
    """Return what begins a transaction that writes: whoever falls silent in it keeps its locks for a while only."""
    milliseconds = round(limits.IDLE_TRANSACTION_SECONDS * 1_000)
    return f"BEGIN; SET LOCAL idle_in_transaction_session_timeout = {milliseconds}"


class PostgresDriver(Driver):
    """Runs jobs on one PostgreSQL database."""

    def __init__(self, url: DatabaseUrl, dialect: Dialect, hook: Hook | None = None) -> None:
        """Start the loop thread; connections are opened when they are needed."""
        super().__init__(url, dialect, hook)
        dsn, self._connect_timeout = asyncpg_address(url.location)
        self._dsn = dsn
        self._loop = asyncio.new_event_loop()
        self._manners = Manners()
        self._pool = Pool(dsn, self._connect_timeout, CONNECTIONS_MAX - IN_FLIGHT_MAX, self._manners)
        # Commands that wait for a locked row can use up the pool; a lease must be renewed all the same, and batches,
        # which wait for no lock, must go on.
        self._urgent = Pool(dsn, self._connect_timeout, 1, self._manners)
        self._batching = Pool(dsn, self._connect_timeout, IN_FLIGHT_MAX, self._manners)
        # What is only told takes no connection away from commands, nor leaves them one that has prepared nothing; it
        # is sent without a name, whoever answers.
        self._telling = Pool(dsn, self._connect_timeout, 1, Manners(names=False, hints=False))
        self._batches = Batches(self._run_to_end, self._together)
        self._arrived: deque[Item] = deque()
        self._woken = False
        self._crowded = False  # several came at once: those who come next are not alone either
        self._closing = asyncio.Event()
        self._buses: list[PostgresBus] = []
        self._tasks = Tasks()
        self._thread = threading.Thread(target=self._serve, name="runtime-persist-postgresql", daemon=True)
        self._thread.start()

    @property
    def losses(self) -> int:
        """Return how many connections ended by themselves."""
        return self._pool.losses + self._urgent.losses + self._batching.losses

    def submit(self, job: Job[R]) -> Future[R]:
        """Run a job on the loop thread."""
        self.check_usable()
        future: Future[R] = Pending()
        with self._gate:
            self.check_usable()
            self._arrived.append(Item(job, future))
        if not self._woken:  # what arrives together wakes the loop once
            if self._crowded:
                wakes.hold_for_this_turn()
            wakes.wake(self._wake)
        return future

    def _wake(self) -> None:
        if self._woken:
            return
        self._woken = True
        with contextlib.suppress(RuntimeError):  # it was closed meanwhile: closing took in what had arrived
            self._loop.call_soon_threadsafe(self._take_in)

    def open_bus(self) -> Bus:
        """Return NOTIFY and LISTEN on the loop thread."""
        bus = PostgresBus(self._loop, lambda: connect_to_listen(self._dsn, self._connect_timeout), self._tell)
        self._buses.append(bus)
        return bus

    def close(self) -> None:
        """Let running jobs finish, then close the connections and stop the loop."""
        if not self.begin_to_close():
            return
        asyncio.run_coroutine_threadsafe(self._shut_down(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _tell(self, query: Query, params: dict[str, Any]) -> None:
        """Run a statement that only notifies."""
        connection = await self._telling.take(None)
        try:
            await connection.fetch(self.dialect.query(query), params)
        finally:
            self._telling.give_back(connection)

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    def _take_in(self) -> None:
        self._woken = False  # before looking: whoever still saw the mark is seen now
        self._crowded = len(self._arrived) > 1
        while self._arrived:
            item = self._arrived.popleft()
            if item.job.mode is Mode.HOT and not item.job.urgent:
                self._batches.add(item)
            else:
                self._tasks.start(self._answer(item))
        self._batches.pump()

    async def _shut_down(self) -> None:
        self._take_in()
        self._closing.set()  # whoever waits to try again gives up
        await self._batches.drained()
        await self._tasks.drained()
        for bus in self._buses:  # what the last commands told is still to be sent
            await bus.end()
        for pool in (self._pool, self._urgent, self._batching, self._telling):
            await pool.close()

    async def _answer(self, item: Item) -> None:
        (await self._run_to_end(item))()

    async def _run_to_end(self, item: Item) -> Answer:
        """Run a job to its end; return what answers its caller."""
        try:
            result = await self._attempts(item.job, maybe_committed=item.maybe_committed)
        except BaseException as error:  # noqa: BLE001 (whatever it is belongs to the caller)
            return partial(item.future.set_exception, error)
        self.committed(int(item.job.mode.writes))
        return partial(item.future.set_result, result)

    async def _together(self, batch: list[Item]) -> tuple[list[Answer], list[Item]]:
        """Run hot jobs of one kind in one transaction; return the answers, and those that were not accepted there.

        Their reasons are not told apart here: alone, a job may wait for its lock, is tried again, or is refused.
        """
        if not self._manners.names:
            return [], batch  # behind a pooler without statement names an exchange holds one statement
        plans = [item.job.plan() for item in batch]
        calls = [step for step in map(next, plans) if isinstance(step, BundleCall)]
        rows = await self._exchange(batch, calls)
        if rows is None:
            return [], batch
        answers: list[Answer] = []
        left: list[Item] = []
        for item, plan, call, row in zip(batch, plans, calls, rows, strict=True):
            try:
                plan.send(_outcome(call, row))
            except StopIteration as done:
                answers.append(partial(item.future.set_result, done.value))
                continue
            except BaseException:  # noqa: BLE001, S110 (it is refused once more alone)
                pass
            plan.close()
            left.append(item)
        self.committed(len(batch) - len(left))
        return answers, left

    async def _exchange(self, batch: list[Item], calls: list[BundleCall]) -> Sequence[Any] | None:
        """Run the bundles of a batch; None: nothing was written, or the connection was lost and it may have been."""
        together = self.dialect.bundle(calls[0].bundle).together
        if together is None or len(calls) < len(batch):
            return None
        try:
            for item in batch:
                self.reached(f"{item.job.name}:before:{together.name}")
            losses = self.losses
            connection = await self._batching.take(None)
            try:
                if self.losses != losses:
                    return None  # the jobs leave out what they know to be stored: they have to look again
                return await connection.fetch_many(together, [arrays_of(call) for call in calls])
            finally:
                self._batching.give_back(connection)
        except (CannotConnect, RepeatJob):
            return None
        except Exception as native:  # noqa: BLE001 (each job finds out alone what it means for it)
            lost = isinstance(self.dialect.classify(native), ConnectionLost)
            for item in batch:
                item.maybe_committed = lost
            return None

    async def _attempts(self, job: Job[R], *, maybe_committed: bool = False) -> R:
        tries = 0
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
            await in_task()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._closing.wait()
            if self._closing.is_set():
                raise job.surrender(error, maybe_committed) from native

    def _unreachable(
        self, native: BaseException, job: Job[R], tries: int, until: float
    ) -> tuple[RuntimePersistError, float | None]:
        """Return what a failure to connect means, and the seconds to wait before the next try.

        A server that cannot be reached is waited for as long as connecting may last: it may be starting again.
        """
        error = self.dialect.classify_refused(native)
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
                connection = await pool.take(until)
                try:
                    if job.mode in _OF_SINGLE_STATEMENTS:
                        return await self._drive(connection, job)
                    return await self._in_transaction(connection, job)
                finally:
                    pool.give_back(connection)
            except RepeatJob as again:
                repeats += 1
                if repeats > _REPEATS_MAX:
                    raise again.native from again

    async def _in_transaction(self, connection: Connection, job: Job[R]) -> R:
        reads = job.mode is Mode.SNAPSHOT
        if not reads:
            self.reached(f"{job.name}:before:begin")
        await connection.execute(_BEGIN_READING if reads else begin_writing())
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
                elif isinstance(step, Together):
                    step = plan.send(await self._in_one(connection, job, step))
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

    async def _in_one(self, connection: Connection, job: Job[Any], step: Together) -> list[int] | None:
        """Run statements that each write a row of their own as one."""
        for call in step.calls:
            self.reached(f"{job.name}:before:{call.query.name}")
        compiled = self.dialect.in_one(tuple(call.query for call in step.calls))
        params = {
            f"{number}:{name}": value for number, (_, given) in enumerate(step.calls) for name, value in given.items()
        }
        try:
            (row,) = await connection.fetch(compiled, params)
        except asyncpg.DivisionByZeroError:  # there was a receipt: nothing of it was done
            await connection.execute("ROLLBACK")
            await connection.execute(begin_writing())
            return None
        return list(row)

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
    found = tuple(row)
    counts: dict[str, int] = {}
    values: dict[str, Row] = {}
    at = 0
    for fragment in call.bundle.fragments:  # each gave its count, and then its columns
        counts[fragment.name] = count = found[at]
        at += 1
        if fragment.returns:
            if count:
                values[fragment.name] = dict(zip(fragment.returns, found[at:], strict=False))
            at += len(fragment.returns)
    return Outcome(counts, values)
