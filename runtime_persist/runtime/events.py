"""Events: those of one run by their numbers, those of the whole space for consumers with a name and a cursor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime_persist.commands.ack_events import AckEvents
from runtime_persist.commands.renumber_events import RenumberEvents
from runtime_persist.engine import arun, run
from runtime_persist.engine.flow import wait as waited
from runtime_persist.engine.notifications import EVENTS, of_run
from runtime_persist.errors import InvalidInput, RunNotFound
from runtime_persist.model import limits
from runtime_persist.model.event_types import ENDS_RUN
from runtime_persist.model.ids import is_short_name, new_id
from runtime_persist.model.records import EventRecord
from runtime_persist.model.states import FINAL_RUN, RunStatus
from runtime_persist.queries import events as event_queries
from runtime_persist.queries import runs as run_queries
from runtime_persist.queries.events import Place
from runtime_persist.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from concurrent.futures import Future

    from runtime_persist.engine import Engine, Flow
    from runtime_persist.engine.notifications import Watch
    from runtime_persist.plan import Row

_log = logger("runtime_persist.events")
_FIRST_LOOK_SECONDS = 0.02
_LONGEST_LOOK_SECONDS = 0.25
"""Operations of another process are not told of one by one: whoever waits for events looks so often."""

Records = list[EventRecord]


class Pauses:
    """How long somebody who waits does so before he looks again: longer and longer, until something came."""

    def __init__(self, longest: float = _LONGEST_LOOK_SECONDS) -> None:
        """Begin with the shortest, and go up to ``longest`` seconds."""
        self._longest = longest
        self._next = _FIRST_LOOK_SECONDS

    def after(self, *, found: bool) -> float:
        """Return the seconds to wait now."""
        if found:
            self._next = _FIRST_LOOK_SECONDS
        pause, self._next = self._next, min(self._next * 1.5, self._longest)
        return pause


class RunEvents:
    """The events of a run, in order; with ``wait`` until the last one of its life."""

    def __init__(self, engine: Engine, run_id: str, after: int, *, wait: bool) -> None:
        """Begin behind number ``after`` (raises InvalidInput)."""
        if type(after) is not int or after < 0:
            msg = f"after must be the number of an event (0: from the beginning), not {after!r}"
            raise InvalidInput(msg)
        self._engine = engine
        self._run_id = run_id
        self._after = after
        self._wait = wait
        self._over = False
        self._known = False
        self._pauses = Pauses()

    def __iter__(self) -> Iterator[EventRecord]:
        """Yield the events; end at the last one there is, or with ``wait`` at the run's end."""
        if not self._wait:
            while page := run(self._page()):
                yield from page
            return
        with self._engine.notifications.watch(of_run(self._run_id)) as watch:
            while not self._over:
                page = run(self._page())
                yield from page
                if not self._over:
                    run(waited(self._pause(watch, page)))

    async def __aiter__(self) -> AsyncIterator[EventRecord]:
        """Do :meth:`__iter__` on an event loop."""
        if not self._wait:
            while page := await arun(self._page()):
                for event in page:
                    yield event
            return
        with self._engine.notifications.watch(of_run(self._run_id)) as watch:
            while not self._over:
                page = await arun(self._page())
                for event in page:
                    yield event
                if not self._over:
                    await arun(waited(self._pause(watch, page)))

    def _pause(self, watch: Watch, page: Records) -> Future[None]:
        return watch.next(self._pauses.after(found=bool(page)))

    def _page(self) -> Flow[Records]:
        engine, run_id, after = self._engine, self._run_id, self._after
        rows: list[Row] = yield engine.coordinator.read(
            "read_events", lambda: event_queries.of_run(engine.space, run_id, after, limits.EVENTS_PAGE)
        )
        if rows:
            self._after = rows[-1]["seq"]
            self._known = True
            self._over = rows[-1]["type"] in ENDS_RUN
        elif not self._known or self._wait:
            yield from self._look()
        return [EventRecord.of(row) for row in rows]

    def _look(self) -> Flow[None]:
        """See whether there is such a run, and whether more can follow (the beginning may lie behind its end)."""
        engine, run_id = self._engine, self._run_id
        row: Row | None = yield engine.coordinator.read("read_run", lambda: run_queries.run(engine.space, run_id))
        if row is None:
            msg = f"there is no run {run_id!r} in space {engine.space!r}"
            raise RunNotFound(msg, run_id=run_id)
        self._known = True
        self._over = RunStatus(row["status"]) in FINAL_RUN and row["event_seq"] <= self._after


class Consumer:
    """Delivers the events of a space to somebody with a name, at least once, in the order of each run.

    Everything that was yielded counts as handled as soon as the next event is asked for, and is acknowledged a page at
    a time, before waiting, and by :meth:`ack`. Whoever dies in between gets the rest again. One process at a time
    consumes under a name: of two, the second to acknowledge gets ConsumerMoved.

    Attributes:
        name: of the consumer; its cursor outlives processes.

    """

    def __init__(self, engine: Engine, name: str, *, wait: bool) -> None:
        """Use ``runtime.events`` (raises InvalidInput)."""
        if not is_short_name(name):
            msg = f"a consumer needs a text of 1 to at most {limits.NAME_BYTES_MAX} bytes as name, not {name!r:.100}"
            raise InvalidInput(msg)
        self.name = name
        self._engine = engine
        self._wait = wait
        self._acked = Place()
        self._yielded = Place()
        self._pauses = Pauses()

    def ack(self) -> None:
        """Acknowledge everything that was yielded so far, the last event too.

        Raises:
            ConsumerMoved: somebody else has acknowledged under this name; what he handled, he handled too.

        """
        run(self._ack(self._yielded))

    async def aack(self) -> None:
        """Do :meth:`ack` from an event loop."""
        await arun(self._ack(self._yielded))

    def __iter__(self) -> Iterator[EventRecord]:
        """Yield events behind the cursor; end where there are no more, or wait for them."""
        run(self._begin())
        with self._engine.notifications.watch(*self._topics()) as watch:
            while True:
                page = run(self._page())
                for event in page:
                    self._yielded = Place(event.position, event.run_id, event.seq)
                    yield event
                run(self._ack(self._yielded))
                if page:
                    continue
                if not self._wait:
                    return
                run(waited(watch.next(self._pauses.after(found=False))))

    async def __aiter__(self) -> AsyncIterator[EventRecord]:
        """Do :meth:`__iter__` on an event loop."""
        await arun(self._begin())
        with self._engine.notifications.watch(*self._topics()) as watch:
            while True:
                page = await arun(self._page())
                for event in page:
                    self._yielded = Place(event.position, event.run_id, event.seq)
                    yield event
                await arun(self._ack(self._yielded))
                if page:
                    continue
                if not self._wait:
                    return
                await arun(waited(watch.next(self._pauses.after(found=False))))

    def _topics(self) -> list[str]:
        return [EVENTS] if self._wait else []

    def _begin(self) -> Flow[None]:
        engine, name = self._engine, self.name
        if (yield engine.coordinator.read("read_foreign_positions", lambda: event_queries.foreign(engine.space))):
            _log.warning("the database was restored on another server: all events of the space are delivered again")
            yield engine.coordinator.commit(RenumberEvents(space=engine.space, command_id=new_id()))
        self._acked = yield engine.coordinator.read("read_cursor", lambda: event_queries.cursor(engine.space, name))
        self._yielded = self._acked

    def _page(self) -> Flow[Records]:
        engine, after = self._engine, self._yielded
        rows: list[Row] = yield engine.coordinator.read(
            "read_outbox", lambda: event_queries.outbox(engine.space, after, limits.EVENTS_PAGE)
        )
        if rows:
            self._pauses = Pauses()
        return [EventRecord.of(row) for row in rows]

    def _ack(self, reached: Place) -> Flow[None]:
        if reached <= self._acked:
            return
        engine = self._engine
        yield engine.coordinator.commit(
            AckEvents(
                space=engine.space,
                command_id=new_id(),
                actor=f"consumer:{self.name}",
                consumer=self.name,
                expected=self._acked,
                reached=reached,
            )
        )
        self._acked = reached
