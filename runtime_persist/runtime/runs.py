"""Runs: start, look, wait, cancel, answer."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from runtime_persist.commands.move_to_front import MoveToFront
from runtime_persist.commands.request_stop import RequestStop
from runtime_persist.engine import Engine, Flow, arun, ownership, run
from runtime_persist.errors import (
    InvalidInput,
    NothingToClaim,
    ResultPending,
    RunCancelled,
    RunFailed,
    RunNotFound,
)
from runtime_persist.model.ids import new_id, thread_id_of
from runtime_persist.model.records import RunRecord
from runtime_persist.model.shown import shown_status
from runtime_persist.model.states import FINAL_RUN, RunStatus
from runtime_persist.queries import runs as run_queries
from runtime_persist.runtime import answering, queueing

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import timedelta

    from langgraph.checkpoint.serde.base import SerializerProtocol

    from runtime_persist.model.retry import RetryPolicy
    from runtime_persist.plan import Row

Records = list[RunRecord]

_FIRST_LOOK_SECONDS = 0.02
_LONGEST_LOOK_SECONDS = 0.5


class Run:
    """A handle on a run.

    Attributes:
        run_id: its id.
        thread_id: its thread.

    """

    def __init__(self, runs: Runs, run_id: str, thread_id: str) -> None:
        """Use ``runtime.runs.start`` or ``runtime.runs.handle``."""
        self._runs = runs
        self.run_id = run_id
        self.thread_id = thread_id

    def record(self) -> RunRecord:
        """Return the run as it is now."""
        return self._runs.get(self.run_id)

    async def arecord(self) -> RunRecord:
        """Do :meth:`record` from an event loop."""
        return await self._runs.aget(self.run_id)

    def result(self, timeout: float | None = None) -> Any:
        """Wait for the run's result; see :meth:`Runs.result`."""
        return self._runs.result(self.run_id, timeout=timeout)

    async def aresult(self, timeout: float | None = None) -> Any:  # noqa: ASYNC109 (the twin of result)
        """Do :meth:`result` from an event loop."""
        return await self._runs.aresult(self.run_id, timeout=timeout)

    def cancel(self) -> str:
        """Ask for the run to stop; see :meth:`Runs.cancel`."""
        return self._runs.cancel(self.run_id)

    async def acancel(self) -> str:
        """Do :meth:`cancel` from an event loop."""
        return await self._runs.acancel(self.run_id)

    def now(self) -> str:
        """Let the run come next; see :meth:`Runs.now`."""
        return self._runs.now(self.run_id)

    async def anow(self) -> str:
        """Do :meth:`now` from an event loop."""
        return await self._runs.anow(self.run_id)


class Runs:
    """The runs of a space. Every method has an ``a``-prefixed twin for event loops."""

    def __init__(self, engine: Engine, serde: SerializerProtocol, versions: Mapping[str, str]) -> None:
        """Use ``runtime.runs``; ``versions`` are those of the graphs bound in this process."""
        self._engine = engine
        self._versions = versions
        self._serde = serde

    def start(
        self,
        graph: str,
        input: Any,  # noqa: A002 (LangGraph's name)
        *,
        thread_id: str | None = None,
        idempotency_key: str | None = None,
        deadline: float | timedelta | None = None,
        retry: RetryPolicy | None = None,
    ) -> Run:
        """Queue a run for a worker and return a handle on it.

        Args:
            graph: name of a registered graph (``runtime.bind`` and workers register names).
            input: the graph's input.
            thread_id: its thread (None: a new one).
            idempotency_key: the same key with the same request returns the first run.
            deadline: seconds after which it is stopped, counted by the database's clock from its start; it ends
                ``timed_out`` wherever it stands then (None: never).
            retry: how often it is attempted when it fails (None: as its graph was registered).

        Raises:
            InvalidInput: a deadline that cannot be meant.
            UnknownGraph: no process of this space ever registered that name; nothing was written.
            IdempotencyMismatch: the key was used for another request.
            InvalidThreadId: the thread id cannot be used.

        """
        return run(self._start(graph, input, thread_id, idempotency_key, deadline, retry))

    async def astart(
        self,
        graph: str,
        input: Any,  # noqa: A002 (LangGraph's name)
        *,
        thread_id: str | None = None,
        idempotency_key: str | None = None,
        deadline: float | timedelta | None = None,
        retry: RetryPolicy | None = None,
    ) -> Run:
        """Do :meth:`start` from an event loop."""
        return await arun(self._start(graph, input, thread_id, idempotency_key, deadline, retry))

    def get(self, run_id: str) -> RunRecord:
        """Return a run as it is now (raises RunNotFound)."""
        return run(self._get(run_id))

    async def aget(self, run_id: str) -> RunRecord:
        """Do :meth:`get` from an event loop."""
        return await arun(self._get(run_id))

    def list(self, *, thread_id: str | None = None, limit: int = 50) -> Records:
        """Return the newest runs, of one thread or of all; at most ``limit``."""
        return run(self._list(thread_id, limit))

    async def alist(self, *, thread_id: str | None = None, limit: int = 50) -> Records:
        """Do :meth:`list` from an event loop."""
        return await arun(self._list(thread_id, limit))

    def cancel(self, run_id: str) -> str:
        """Ask for a run to stop and return its status now.

        A queued or waiting run ends at once. A running one takes no new work; results of work in flight are still
        accepted, and it ends when it has stopped. One whose lease ran out is taken over, only to end it.

        Raises:
            RunNotFound: there is no such run.

        """
        return run(self._cancel(run_id))

    async def acancel(self, run_id: str) -> str:
        """Do :meth:`cancel` from an event loop."""
        return await arun(self._cancel(run_id))

    def now(self, run_id: str) -> str:
        """Move a queued run to the front of the queue, or end a run's wait for its retry; return its status.

        It still waits for a free slot, and for older open runs of its thread.

        Raises:
            RunNotFound: there is no such run.
            IllegalTransition: it waits for no worker.

        """
        return run(self._now(run_id))

    async def anow(self, run_id: str) -> str:
        """Do :meth:`now` from an event loop."""
        return await arun(self._now(run_id))

    def result(self, run_id: str, *, timeout: float | None = None) -> Any:
        """Wait for a run's result.

        Args:
            run_id: the run.
            timeout: seconds to wait (None: for ever; 0: only look).

        Raises:
            ResultPending: no result within ``timeout``; the message has status and question.
            RunFailed, RunCancelled: it ended without one.
            RunNotFound: there is no such run.

        """
        return run(self._result(run_id, timeout))

    async def aresult(self, run_id: str, *, timeout: float | None = None) -> Any:  # noqa: ASYNC109 (the twin)
        """Do :meth:`result` from an event loop."""
        return await arun(self._result(run_id, timeout))

    def question(self, run_id: str) -> Any:
        """Return why a run waits for a person, None when it does not."""
        return run(self._question(run_id))

    async def aquestion(self, run_id: str) -> Any:
        """Do :meth:`question` from an event loop."""
        return await arun(self._question(run_id))

    def answer(self, run_id: str, command: Any) -> str:
        """Answer a waiting run with a LangGraph ``Command(resume=…)``; it is queued and a worker resumes it.

        Raises:
            IllegalTransition: the run is not waiting.

        """
        return run(self._answer(run_id, command))

    async def aanswer(self, run_id: str, command: Any) -> str:
        """Do :meth:`answer` from an event loop."""
        return await arun(self._answer(run_id, command))

    def resolve(self, operation_id: str, *, happened: bool, result: Any = None) -> str:
        """Say what became of an operation whose outcome is unknown; the waiting run is queued.

        Args:
            operation_id: from the question.
            happened: True: it counts as succeeded with ``result``; False: it did not happen, and the resumed run
                calls it again with the same idempotency key.
            result: what the call would have returned.

        Raises:
            OperationNotFound, IllegalTransition: nothing to settle.

        """
        return run(answering.resolve(self._engine, self._serde, operation_id, happened=happened, result=result))

    async def aresolve(self, operation_id: str, *, happened: bool, result: Any = None) -> str:
        """Do :meth:`resolve` from an event loop."""
        return await arun(answering.resolve(self._engine, self._serde, operation_id, happened=happened, result=result))

    def handle(self, run_id: str) -> Run:
        """Return a handle on a run that exists (raises RunNotFound)."""
        found = self.get(run_id)
        return Run(self, found.run_id, found.thread_id)

    # --- one implementation for both --------------------------------------------------------------------------------

    def _start(
        self,
        graph: str,
        given: Any,
        thread_id: str | None,
        key: str | None,
        deadline: float | timedelta | None,
        retry: RetryPolicy | None,
    ) -> Flow[Run]:
        said: Any = {"thread_id": thread_id, "key": key, "deadline": deadline, "retry": retry}
        made = yield from queueing.queue(self._engine, self._serde, graph, given, versions=self._versions, **said)
        return Run(self, *made)

    def _row(self, run_id: str) -> Flow[Row]:
        engine = self._engine
        row: Row | None = yield engine.coordinator.read(
            "read_run",
            lambda: run_queries.run(engine.space, run_id),
        )
        if row is None:
            msg = f"there is no run {run_id!r} in space {engine.space!r}"
            raise RunNotFound(msg, run_id=run_id)
        return row

    def _get(self, run_id: str) -> Flow[RunRecord]:
        return RunRecord.of((yield from self._row(run_id)))

    def _list(self, thread_id: str | None, limit: int) -> Flow[Records]:
        if limit < 0:
            msg = f"limit must not be negative, got {limit}"
            raise InvalidInput(msg, limit=limit)
        engine = self._engine
        thread = None if thread_id is None else thread_id_of(thread_id)
        rows = yield engine.coordinator.read(
            "list_runs",
            lambda: run_queries.listing(engine.space, thread, limit),
        )
        return [RunRecord.of(row) for row in rows]

    def _cancel(self, run_id: str) -> Flow[str]:
        engine = self._engine
        receipt = yield engine.coordinator.commit(
            RequestStop(space=engine.space, command_id=new_id(), actor="user", run_id=run_id),
        )
        row = yield from self._row(run_id)
        if shown_status(row, row["now_us"]) != "unknown":
            return str(receipt.result["status"])
        # Its holder is gone, so nobody would ever end it: take it over, only to end it.
        try:
            owned, _ = yield from ownership.claim(engine, self._serde, row)
        except NothingToClaim:
            return str((yield from self._row(run_id))["status"])
        return (yield from ownership.cancel(engine, owned, row["stop_reason"] or "cancel"))

    def _now(self, run_id: str) -> Flow[str]:
        engine = self._engine
        receipt = yield engine.coordinator.commit(
            MoveToFront(space=engine.space, command_id=new_id(), actor="user", run_id=run_id),
        )
        return str(receipt.result["status"])

    def _answer(self, run_id: str, command: Any) -> Flow[str]:
        row = yield from self._row(run_id)
        return (yield from answering.answer(self._engine, self._serde, row, command))

    def _result(self, run_id: str, timeout: float | None) -> Flow[Any]:
        deadline = None if timeout is None else time.monotonic() + timeout
        pause = _FIRST_LOOK_SECONDS
        while True:
            row = yield from self._row(run_id)
            if RunStatus(row["status"]) in FINAL_RUN:
                return (yield from self._final(row))
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                record = RunRecord.of(row)
                asks = yield from self._asked(row)
                msg = f"run {run_id} has no result yet: it is {record.shown}" + (f"; it asks {asks}" if asks else "")
                raise ResultPending(msg, run_id=run_id, status=row["status"], question=asks)
            yield _after(pause if left is None else min(pause, left))
            pause = min(pause * 1.5, _LONGEST_LOOK_SECONDS)

    def _final(self, row: Row) -> Flow[Any]:
        run_id, status = row["run_id"], RunStatus(row["status"])
        if status is RunStatus.SUCCEEDED:
            return (
                yield from ownership.decode(
                    self._engine,
                    self._serde,
                    row["result"],
                    f"the result of run {run_id}",
                )
            )
        if status is RunStatus.CANCELLED:
            msg = f"run {run_id} was cancelled ({row['stop_reason'] or 'by its caller'})"
            raise RunCancelled(msg, run_id=run_id, stop_reason=row["stop_reason"])
        msg = f"run {run_id} {status.value}: {row['error_code']}: {row['error_summary']}"
        raise RunFailed(msg, run_id=run_id, error_code=row["error_code"])

    def _asked(self, row: Row) -> Flow[Any]:
        if row["question"] is None:
            return None
        where = f"the question of run {row['run_id']}"
        return (yield from ownership.decode(self._engine, self._serde, row["question"], where))

    def _question(self, run_id: str) -> Flow[Any]:
        return (yield from self._asked((yield from self._row(run_id))))


def _after(seconds: float) -> Future[None]:
    """Return a future that is done after some seconds (a waiting flow must not block an event loop)."""
    future: Future[None] = Future()
    timer = threading.Timer(seconds, future.set_result, (None,))
    timer.daemon = True
    timer.start()
    return future
