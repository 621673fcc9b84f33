"""Reading a run's live stream, from whatever process executes it, over takeovers, to the run's end."""

from __future__ import annotations

import dataclasses
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Any

from runtime_persist.commands.parts import run_rows
from runtime_persist.engine import arun, payloads, run
from runtime_persist.engine.flow import wait as waited
from runtime_persist.engine.notifications import of_run
from runtime_persist.engine.wishes import WHO_READS, WISHES, of_stream
from runtime_persist.errors import InvalidInput, RunNotFound, RuntimePersistError
from runtime_persist.model import limits
from runtime_persist.model.states import FINAL_RUN, RunStatus
from runtime_persist.model.streams import (
    ATTEMPT,
    BEGIN,
    CHUNK,
    DROPPED,
    END,
    OVER,
    STREAM_MODES,
    SUBGRAPHS,
    Frame,
    StreamChunk,
    Wish,
)
from runtime_persist.plan import one_or_none
from runtime_persist.queries import runs as run_queries

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Sequence

    from langgraph.checkpoint.serde.base import SerializerProtocol

    from runtime_persist.engine import Engine, Flow
    from runtime_persist.plan import Row

_LOOK_SECONDS = 0.25
"""How often a reader looks whether the run is final, should nobody tell him."""

Chunks = list[StreamChunk]


class Stream:
    """The live stream of one run; iterate over it once, sync or async."""

    def __init__(
        self,
        engine: Engine,
        serde: SerializerProtocol,
        run_id: str,
        modes: str | Sequence[str],
        *,
        subgraphs: bool,
    ) -> None:
        """Use ``run.stream`` (raises InvalidInput)."""
        self._engine = engine
        self._serde = serde
        self._run_id = run_id
        self._wish = Wish(run_id, checked_modes(modes), subgraphs)
        self._inbox: deque[bytes] = deque()
        self._lock = threading.Lock()
        self._look_at = 0.0
        self._ask_at = 0.0
        self._epoch: int | None = None
        self._attempt_id: str | None = None
        self._number: int | None = None
        self._attempt_over = False
        self._ends_at: float | None = None
        self._over = False
        self._waker = engine.notifications.watch()

    def __iter__(self) -> Iterator[StreamChunk]:
        """Yield chunks until the run is final."""
        with self._subscribed():
            while not self._over:
                yield from run(self._more())

    async def __aiter__(self) -> AsyncIterator[StreamChunk]:
        """Do :meth:`__iter__` on an event loop."""
        with self._subscribed():
            while not self._over:
                for chunk in await arun(self._more()):
                    yield chunk

    # --- hearing ----------------------------------------------------------------------------------------------------

    def _subscribed(self) -> _Both:
        notifications = self._engine.notifications
        return _Both(
            notifications.subscribe(of_stream(self._run_id), self._heard),
            notifications.subscribe(of_run(self._run_id), self._happened),
            notifications.subscribe(WHO_READS, self._asked),
        )

    def _heard(self, message: bytes | None) -> None:
        if message is None:
            return
        with self._lock:
            # A chunk that finds no room is missed: the next one that is heard has a higher number.
            if len(self._inbox) < limits.STREAM_WAITING_CHUNKS_MAX or Frame.decoded(message).kind != CHUNK:
                self._inbox.append(message)
        self._waker.wake()

    def _happened(self, _message: bytes | None) -> None:
        self._look_at = 0.0
        self._waker.wake()

    def _asked(self, _message: bytes | None) -> None:
        self._ask_at = 0.0
        self._waker.wake()

    # --- reading ----------------------------------------------------------------------------------------------------

    def _more(self) -> Flow[Chunks]:
        """Return the next chunks; none: nothing came for a while."""
        self._ask()
        found: Chunks = []
        while self._inbox:
            with self._lock:
                frame = Frame.decoded(self._inbox.popleft())
            found += yield from self._read(frame)
        if not found and time.monotonic() >= self._look_at:
            found += yield from self._look()
        if not found:
            yield from waited(self._waker.next(self._pause()))
        return found

    def _pause(self) -> float:
        until = [self._look_at, self._ask_at]
        if self._ends_at is not None:
            until.append(self._ends_at)
        return max(0.0, min(until) - time.monotonic())

    def _ask(self) -> None:
        """Say that this stream is read: who executes the run sends it only as long as he hears so."""
        now = time.monotonic()
        if now >= self._ask_at:
            self._engine.notifications.publish(WISHES, self._wish.encoded())
            self._wish = dataclasses.replace(self._wish, first=False)
            self._ask_at = now + limits.STREAM_WANTED_SECONDS / limits.STREAM_ASKS_PER_WANTED

    def _read(self, frame: Frame) -> Flow[Chunks]:
        """Return what a frame says; one of an attempt that another has taken over from says nothing."""
        if self._epoch is not None and frame.epoch < self._epoch:
            return []
        found: Chunks = []
        if self._epoch != frame.epoch and frame.kind != BEGIN:
            self._wish, self._ask_at = dataclasses.replace(self._wish, first=True), 0.0
            return []  # who comes in the middle asks what the attempt is, and reads from there on
        if self._epoch != frame.epoch:
            self._epoch, self._attempt_id, self._attempt_over = frame.epoch, frame.attempt_id, False
            self._number = frame.number
            self._ask_at = 0.0  # whoever executes it may not have heard that this stream is read
            found.append((yield from self._attempt(frame)))
        if frame.kind != BEGIN and self._number is not None and frame.number > self._number:
            found.append(self._chunk(DROPPED, {"chunks": frame.number - self._number}))
            self._number = frame.number
        if frame.kind == OVER:
            self._attempt_over = True
        if frame.kind == CHUNK:
            self._number = frame.number + 1
            if frame.mode in self._wish.modes and (self._wish.subgraphs or not frame.ns):
                found += self._loaded(frame)
        return found

    def _loaded(self, frame: Frame) -> Chunks:
        try:
            data = self._serde.loads_typed((frame.form, frame.data))
        except RuntimePersistError:  # of a class that this process does not know
            return [self._chunk(DROPPED, {"chunks": 1})]
        return [self._chunk(frame.mode, data, frame.ns)]

    def _chunk(self, mode: str, data: Any, ns: tuple[str, ...] = ()) -> StreamChunk:
        return StreamChunk(mode, data, ns, self._attempt_id, self._epoch)

    def _attempt(self, frame: Frame) -> Flow[StreamChunk]:
        engine, attempt_id = self._engine, frame.attempt_id
        row: Row | None = yield engine.coordinator.read(
            "read_attempt",
            lambda: one_or_none(run_rows.READ_ATTEMPT, space=engine.space, attempt_id=attempt_id),
        )
        wanted = {*self._wish.modes, *([SUBGRAPHS] if self._wish.subgraphs else [])}
        missing = sorted(wanted - set(frame.mode.split(",")))
        about = {"cause": row and row["cause"], "attempt_no": row and row["attempt_no"], "missing": missing}
        return self._chunk(ATTEMPT, about)

    def _look(self) -> Flow[Chunks]:
        """See whether the run is final; its last chunks are then waited for a moment."""
        engine, run_id = self._engine, self._run_id
        row: Row | None = yield engine.coordinator.read("read_run", lambda: run_queries.run(engine.space, run_id))
        if row is None:
            msg = f"there is no run {run_id!r} in space {engine.space!r}"
            raise RunNotFound(msg, run_id=run_id)
        now = time.monotonic()
        self._look_at = now + _LOOK_SECONDS
        if RunStatus(row["status"]) not in FINAL_RUN:
            return []
        if self._ends_at is None:
            self._ends_at = now + limits.STREAM_END_SECONDS
        if self._epoch == row["epoch"] and not self._attempt_over and now < self._ends_at:
            self._look_at = self._ends_at
            return []
        if self._inbox:
            return []  # they came meanwhile
        self._over = True
        return [self._chunk(END, (yield from self._end(row)))]

    def _end(self, row: Row) -> Flow[dict[str, Any]]:
        said = {"status": row["status"]}
        if row["status"] == RunStatus.SUCCEEDED:
            where = f"the result of run {self._run_id}"
            return said | {"result": (yield from payloads.decode(self._engine, self._serde, row["result"], where))}
        return said | {"error_code": row["error_code"], "error_summary": row["error_summary"]}


class _Both:
    """Ends several subscriptions."""

    def __init__(self, *subscriptions: Any) -> None:
        self._subscriptions = subscriptions

    def __enter__(self) -> None:
        """Nothing more is to be done."""

    def __exit__(self, *_: object) -> None:
        for subscription in self._subscriptions:
            subscription.close()


def checked_modes(modes: str | Sequence[str]) -> tuple[str, ...]:
    """Return stream modes that somebody gave (raises InvalidInput)."""
    given = (modes,) if isinstance(modes, str) else tuple(modes)
    unknown = [mode for mode in given if mode not in STREAM_MODES]
    if unknown or not given:
        msg = f"stream_mode is one or more of {', '.join(STREAM_MODES)}, not {modes!r}"
        raise InvalidInput(msg)
    return given
