"""Runs: start, look, wait; what a person does about a run is in :mod:`control`."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

from runtime_persist.engine import Flow, arun, payloads, run
from runtime_persist.engine.notifications import of_run
from runtime_persist.errors import InvalidInput, ResultPending, RunCancelled, RunFailed
from runtime_persist.model.ids import thread_id_of
from runtime_persist.model.records import RunRecord
from runtime_persist.model.states import FINAL_RUN, RunStatus
from runtime_persist.queries import runs as run_queries
from runtime_persist.runtime import queueing
from runtime_persist.runtime.control import Controls, Questions
from runtime_persist.runtime.domains import Domains
from runtime_persist.runtime.events import Pauses
from runtime_persist.runtime.following import Following
from runtime_persist.runtime.queueing import Terms
from runtime_persist.runtime.recovering import Recovery

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
    from datetime import timedelta

    from runtime_persist.adapters.workflow import WorkflowCheckpointAdapter
    from runtime_persist.engine.notifications import Watch
    from runtime_persist.model.budgets import Budget
    from runtime_persist.model.records import EventRecord
    from runtime_persist.model.retry import RetryPolicy
    from runtime_persist.model.streams import StreamChunk
    from runtime_persist.plan import Row

Records = list[RunRecord]

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

    def questions(self) -> Questions:
        """Return what the run asks a person; see :meth:`Runs.questions`."""
        return self._runs.questions(self.run_id)

    async def aquestions(self) -> Questions:
        """Do :meth:`questions` from an event loop."""
        return await self._runs.aquestions(self.run_id)

    def resume(self, value: Any = None, **said: Any) -> str:
        """Answer what the run asks; see :meth:`Runs.resume`."""
        return self._runs.resume(self.run_id, value, **said)

    async def aresume(self, value: Any = None, **said: Any) -> str:
        """Do :meth:`resume` from an event loop."""
        return await self._runs.aresume(self.run_id, value, **said)

    def events(self, after: int = 0, *, wait: bool = False) -> Iterator[EventRecord]:
        """Yield the run's events; see :meth:`Runs.events`."""
        return self._runs.events(self.run_id, after=after, wait=wait)

    def aevents(self, after: int = 0, *, wait: bool = False) -> AsyncIterator[EventRecord]:
        """Do :meth:`events` on an event loop."""
        return self._runs.aevents(self.run_id, after=after, wait=wait)

    def stream(self, stream_mode: str | Sequence[str] = "updates", *, subgraphs: bool = False) -> Iterator[StreamChunk]:
        """Yield the run's live stream; see :meth:`Runs.stream`."""
        return self._runs.stream(self.run_id, stream_mode, subgraphs=subgraphs)

    def astream(
        self, stream_mode: str | Sequence[str] = "updates", *, subgraphs: bool = False
    ) -> AsyncIterator[StreamChunk]:
        """Do :meth:`stream` on an event loop."""
        return self._runs.astream(self.run_id, stream_mode, subgraphs=subgraphs)


class Runs(Controls[Run], Domains, Following, Recovery):
    """The runs of a space. Every method has an ``a``-prefixed twin for event loops."""

    def __init__(self, saver: WorkflowCheckpointAdapter, versions: Mapping[str, str]) -> None:
        """Use ``runtime.runs``; ``versions`` are those of the graphs bound in this process."""
        self._saver = saver
        self._engine = saver.engine
        self._serde = saver.serde
        self._versions = versions

    def start(
        self,
        graph: str,
        input: Any,  # noqa: A002 (LangGraph's name)
        *,
        thread_id: str | None = None,
        idempotency_key: str | None = None,
        deadline: float | timedelta | None = None,
        retry: RetryPolicy | None = None,
        on_busy: str = "enqueue",
        checkpoint_id: str | None = None,
        priority: int = 0,
        scope: str | None = None,
        budget: Budget | None = None,
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
            on_busy: what it does when its thread has open runs. ``enqueue``: it waits for them. ``reject``: it is not
                started. ``interrupt``: they are stopped, and it goes on from what they committed. ``rollback``: they
                are stopped, and the thread goes back to where the oldest of them began, as if they had not been (what
                they did outside stays in the journal). A run that is executed ends when it has stopped, and the new
                one waits for that; all of it is decided in the transaction that starts the new one.
            checkpoint_id: begin at this checkpoint of the thread's root graph instead of the latest: a fork in the
                same thread, as LangGraph makes it.
            priority: the higher goes first.
            scope: what at most one run is active in at a time (None: its thread).
            budget: what its calls may take, over all attempts (None: any amount).

        Raises:
            InvalidInput: a deadline, a policy or a priority that cannot be meant; a checkpoint without its thread.
            ThreadBusy: the thread has an open run, and ``reject`` was asked for.
            CheckpointNotFound: the thread has no such checkpoint, or a rollback finds where it goes back to pruned.
            UnknownGraph: no process of this space ever registered that name; nothing was written.
            IdempotencyMismatch: the key was used for another request.
            InvalidThreadId: the thread id cannot be used.

        """
        terms = Terms(
            thread_id=thread_id,
            key=idempotency_key,
            deadline=deadline,
            retry=retry,
            on_busy=on_busy,
            checkpoint_id=checkpoint_id,
            priority=priority,
            scope=scope,
            budget=budget,
        )
        return run(self._start(graph, input, terms))

    async def astart(
        self,
        graph: str,
        input: Any,  # noqa: A002 (LangGraph's name)
        *,
        thread_id: str | None = None,
        idempotency_key: str | None = None,
        deadline: float | timedelta | None = None,
        retry: RetryPolicy | None = None,
        on_busy: str = "enqueue",
        checkpoint_id: str | None = None,
        priority: int = 0,
        scope: str | None = None,
        budget: Budget | None = None,
    ) -> Run:
        """Do :meth:`start` from an event loop."""
        terms = Terms(
            thread_id=thread_id,
            key=idempotency_key,
            deadline=deadline,
            retry=retry,
            on_busy=on_busy,
            checkpoint_id=checkpoint_id,
            priority=priority,
            scope=scope,
            budget=budget,
        )
        return await arun(self._start(graph, input, terms))

    def get(self, run_id: str) -> RunRecord:
        """Return a run as it is now (raises RunNotFound)."""
        return run(self._get(run_id))

    async def aget(self, run_id: str) -> RunRecord:
        """Do :meth:`get` from an event loop."""
        return await arun(self._get(run_id))

    def list(self, *, thread_id: str | None = None, limit: int = 50, before: str | None = None) -> Records:
        """Return the newest runs, of one thread or of all; at most ``limit``.

        ``before``: only those that were started before the run of this id: the next page, when it is the last run of
        the one before.
        """
        return run(self._list(thread_id, limit, before))

    async def alist(self, *, thread_id: str | None = None, limit: int = 50, before: str | None = None) -> Records:
        """Do :meth:`list` from an event loop."""
        return await arun(self._list(thread_id, limit, before))

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

    def handle(self, run_id: str) -> Run:
        """Return a handle on a run that exists (raises RunNotFound)."""
        found = self.get(run_id)
        return Run(self, found.run_id, found.thread_id)

    # --- one implementation for both --------------------------------------------------------------------------------

    def _start(self, graph: str, given: Any, terms: Terms) -> Flow[Run]:
        return self._handle(*(yield from queueing.start(self._saver, graph, given, terms, self._versions)))

    def _handle(self, run_id: str, thread_id: str) -> Run:
        return Run(self, run_id, thread_id)

    def _get(self, run_id: str) -> Flow[RunRecord]:
        return RunRecord.of((yield from self._row(run_id)))

    def _list(self, thread_id: str | None, limit: int, before: str | None) -> Flow[Records]:
        if limit < 0:
            msg = f"limit must not be negative, got {limit}"
            raise InvalidInput(msg, limit=limit)
        engine = self._engine
        thread = None if thread_id is None else thread_id_of(thread_id)
        rows = yield engine.coordinator.read(
            "list_runs",
            lambda: run_queries.listing(engine.space, thread, limit, before),
        )
        return [RunRecord.of(row) for row in rows]

    def _result(self, run_id: str, timeout: float | None) -> Flow[Any]:
        row = yield from self._row(run_id)
        if RunStatus(row["status"]) in FINAL_RUN:
            return (yield from self._final(row))
        with self._engine.notifications.watch(of_run(run_id)) as watch:
            row = yield from self._ended(run_id, watch, timeout)
        if RunStatus(row["status"]) in FINAL_RUN:
            return (yield from self._final(row))
        record = RunRecord.of(row)
        asks = yield from self._asked(row)
        msg = f"run {run_id} has no result yet: it is {record.shown}" + (f"; it asks {asks}" if asks else "")
        raise ResultPending(msg, run_id=run_id, status=row["status"], question=asks)

    def _ended(self, run_id: str, watch: Watch, timeout: float | None) -> Flow[Row]:
        """Return the run's row when it is final, or when the time is over."""
        deadline = math.inf if timeout is None else time.monotonic() + timeout
        pauses = Pauses(_LONGEST_LOOK_SECONDS)
        while True:
            row = yield from self._row(run_id)
            left = deadline - time.monotonic()
            if RunStatus(row["status"]) in FINAL_RUN or left <= 0:
                return row
            yield watch.next(min(pauses.after(found=False), left))

    def _final(self, row: Row) -> Flow[Any]:
        run_id, status = row["run_id"], RunStatus(row["status"])
        if status is RunStatus.SUCCEEDED:
            return (
                yield from payloads.decode(
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
