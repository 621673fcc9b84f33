"""What a person does about a run: stop it, hurry it, answer it, retry it, fork it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

from runtime_persist.commands.move_to_front import MoveToFront
from runtime_persist.commands.request_stop import RequestStop
from runtime_persist.engine import Engine, Flow, arun, domains, ownership, run, settling
from runtime_persist.errors import DomainsOpen, NothingToClaim, RunNotFound
from runtime_persist.model.ids import new_id
from runtime_persist.model.shown import shown_status
from runtime_persist.queries import runs as run_queries
from runtime_persist.runtime import answering, queueing
from runtime_persist.runtime.queueing import Terms

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import timedelta

    from langgraph.checkpoint.serde.base import SerializerProtocol

    from runtime_persist.adapters.workflow import WorkflowCheckpointAdapter
    from runtime_persist.model.budgets import Budget
    from runtime_persist.model.questions import Question
    from runtime_persist.plan import Row

Questions = list["Question"]
Handle = TypeVar("Handle")
"""What a new run is handed out as."""


class Controls(Generic[Handle]):
    """Part of :class:`runtime_persist.runtime.runs.Runs`."""

    _engine: Engine
    _serde: SerializerProtocol
    _saver: WorkflowCheckpointAdapter
    _versions: Mapping[str, str]

    def _handle(self, run_id: str, thread_id: str) -> Handle:
        raise NotImplementedError

    # --- stopping and hurrying ------------------------------------------------------------------------------------

    def cancel(self, run_id: str) -> str:
        """Ask for a run to stop and return its status now.

        A queued or waiting run ends at once. A running one takes no new work; results of work in flight are still
        accepted, and it ends when it has stopped. One whose lease ran out is taken over, only to end it (and it does
        not end before what its attempts could write to is proved revoked). Asking again
        changes nothing, and neither does asking for a run that has ended.

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

    # --- questions and answers ------------------------------------------------------------------------------------

    def questions(self, run_id: str) -> Questions:
        """Return what a run asks a person, one question for each interrupt; none when it does not wait.

        Raises:
            RunNotFound: there is no such run.

        """
        return run(self._questions(run_id))

    async def aquestions(self, run_id: str) -> Questions:
        """Do :meth:`questions` from an event loop."""
        return await arun(self._questions(run_id))

    def resume(
        self,
        run_id: str,
        value: Any = None,
        *,
        question_id: str | None = None,
        idempotency_key: str | None = None,
        by: str | None = None,
    ) -> str:
        """Answer what a run asks; it is queued, and a worker resumes it. Return its status.

        Args:
            run_id: the run.
            value: what the graph's ``interrupt`` returns; or, when the run asks several things at once, a map of such
                values by interrupt id. It may answer some of them: the run goes on as far as it can, and asks the
                others again. A breakpoint needs no value. A run that has spent its budget is answered with a
                :class:`runtime_persist.Budget`: it is raised (:meth:`raise_budget`), and the run goes on.
            question_id: the answer is for this question only (of :meth:`questions`), not for one that came later.
            idempotency_key: the same key with the same value is one answer, however often it is delivered.
            by: who says it, recorded with the answer.

        Raises:
            AlreadyAnswered: somebody was quicker; the error says who, and when.
            QuestionNotFound: the run does not ask that, or asks what became of an operation (:meth:`resolve`).
            InvalidInput: it asks several things, and the answer does not say which one it is for.
            IllegalTransition: the run waits for no answer.
            IdempotencyMismatch: the key was used for another answer to this run.
            RunNotFound: there is no such run.

        """
        return run(self._resume(run_id, value, question_id, idempotency_key, by))

    async def aresume(
        self,
        run_id: str,
        value: Any = None,
        *,
        question_id: str | None = None,
        idempotency_key: str | None = None,
        by: str | None = None,
    ) -> str:
        """Do :meth:`resume` from an event loop."""
        return await arun(self._resume(run_id, value, question_id, idempotency_key, by))

    def question(self, run_id: str) -> Any:
        """Return why a run waits for a person, as it is stored; None when it does not (see :meth:`questions`)."""
        return run(self._question(run_id))

    async def aquestion(self, run_id: str) -> Any:
        """Do :meth:`question` from an event loop."""
        return await arun(self._question(run_id))

    def answer(self, run_id: str, command: Any) -> str:
        """Answer a waiting run with a LangGraph ``Command(resume=…)``; it is queued and a worker resumes it.

        Raises:
            AlreadyAnswered: somebody was quicker.
            IllegalTransition: the run is not waiting.

        """
        return run(self._answer(run_id, command))

    async def aanswer(self, run_id: str, command: Any) -> str:
        """Do :meth:`answer` from an event loop."""
        return await arun(self._answer(run_id, command))

    def resolve(self, operation_id: str, *, happened: bool, result: Any = None, by: str | None = None) -> str:
        """Say what became of an operation whose outcome is unknown; the waiting run is queued. Return its status.

        A run that has ended stays so; what it left open is settled for who calls the operation again.

        Args:
            operation_id: from the question.
            happened: True: it counts as succeeded with ``result``; False: it did not happen, and the resumed run
                calls it again with the same idempotency key.
            result: what the call would have returned.
            by: who says it, recorded with it.

        Raises:
            AlreadyAnswered: somebody was quicker; the error says who, and when.
            OperationNotFound, IllegalTransition: nothing to settle.

        """
        said: Any = {"happened": happened, "result": result, "by": by}
        return run(answering.resolve(self._engine, self._serde, operation_id, **said))

    async def aresolve(self, operation_id: str, *, happened: bool, result: Any = None, by: str | None = None) -> str:
        """Do :meth:`resolve` from an event loop."""
        said: Any = {"happened": happened, "result": result, "by": by}
        return await arun(answering.resolve(self._engine, self._serde, operation_id, **said))

    def raise_budget(self, run_id: str, budget: Budget, *, by: str | None = None) -> str:
        """Raise what a run's calls may take; if it waits because that was spent, it is queued. Return its status.

        Args:
            run_id: the run.
            budget: the new limits; what it does not name stays as it is.
            by: who says it, recorded with it.

        Raises:
            IllegalTransition: the run has ended, has no such limit, or a higher one.
            RunNotFound: there is no such run.
            InvalidInput: no budget.

        """
        return run(self._raise_budget(run_id, budget, by))

    async def araise_budget(self, run_id: str, budget: Budget, *, by: str | None = None) -> str:
        """Do :meth:`raise_budget` from an event loop."""
        return await arun(self._raise_budget(run_id, budget, by))

    # --- once more, and from another place ------------------------------------------------------------------------

    def retry(
        self,
        run_id: str,
        *,
        from_start: bool = False,
        deadline: float | timedelta | None = None,
        idempotency_key: str | None = None,
    ) -> Handle:
        """Retry a run that has ended: queue a new one that names it as ``retry_of_run_id``.

        It goes on where the run stopped, at its last checkpoint: finished tasks and operations are not repeated, and
        what a person edited since, or answered before, counts. A run that stored nothing is given its input.

        Args:
            run_id: the run.
            from_start: begin where the run began, with its input; what it stored stays in the thread's history. (An
                operation that it made runs again: the new run's tasks are other tasks.)
            deadline: as for :meth:`start`; the run's own counted from its own start.
            idempotency_key: the same key is the same retry.

        Raises:
            IllegalTransition: it has not ended, or it succeeded and there is nothing to go on with.
            ThreadMovedOn: a later run of its thread has begun or is open (a retry of it, say).
            CheckpointNotFound: where it began was pruned (with ``from_start``).
            RunNotFound, UnknownGraph, IdempotencyMismatch: as the names say; nothing was written.

        """
        return run(self._retry(run_id, Terms(deadline=deadline, key=idempotency_key), from_start=from_start))

    async def aretry(
        self,
        run_id: str,
        *,
        from_start: bool = False,
        deadline: float | timedelta | None = None,
        idempotency_key: str | None = None,
    ) -> Handle:
        """Do :meth:`retry` from an event loop."""
        terms = Terms(deadline=deadline, key=idempotency_key)
        return await arun(self._retry(run_id, terms, from_start=from_start))

    def fork(
        self,
        run_id: str,
        *,
        checkpoint_id: str | None = None,
        thread_id: str | None = None,
        input: Any = None,  # noqa: A002 (LangGraph's name)
        idempotency_key: str | None = None,
        deadline: float | timedelta | None = None,
    ) -> Handle:
        """Queue a run in a new thread that begins at a checkpoint of this run; the run itself is untouched.

        The new thread has the history up to that checkpoint, and the journal: an operation of the tasks behind it
        returns what it returned, one whose outcome is not known is asked about. Content is shared, not copied.

        Args:
            run_id: the run, in whatever state.
            checkpoint_id: a checkpoint of the root graph that it stored (None: its last one).
            thread_id: the new thread (None: an id is made).
            input: for the new run; None runs the tasks behind the checkpoint again, ``Command(resume=…)`` answers the
                question that was asked there.
            idempotency_key: the same key with the same request is the same fork.
            deadline: as for :meth:`start`.

        Raises:
            CheckpointNotFound: the run stored no such checkpoint, or it was pruned.
            ThreadNotEmpty, ThreadDeleted: the thread is not a new one.
            RunNotFound, UnknownGraph, InvalidThreadId, IdempotencyMismatch: as the names say; nothing was written.

        """
        terms = Terms(thread_id=thread_id, key=idempotency_key, deadline=deadline)
        return run(self._fork(run_id, checkpoint_id, input, terms))

    async def afork(
        self,
        run_id: str,
        *,
        checkpoint_id: str | None = None,
        thread_id: str | None = None,
        input: Any = None,  # noqa: A002 (LangGraph's name)
        idempotency_key: str | None = None,
        deadline: float | timedelta | None = None,
    ) -> Handle:
        """Do :meth:`fork` from an event loop."""
        terms = Terms(thread_id=thread_id, key=idempotency_key, deadline=deadline)
        return await arun(self._fork(run_id, checkpoint_id, input, terms))

    # --- one implementation for both ------------------------------------------------------------------------------

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
            yield from domains.recover(engine, owned)
        except (NothingToClaim, DomainsOpen):
            return str((yield from self._row(run_id))["status"])
        return (yield from settling.cancel(engine, owned, row["stop_reason"] or "cancel"))

    def _now(self, run_id: str) -> Flow[str]:
        engine = self._engine
        receipt = yield engine.coordinator.commit(
            MoveToFront(space=engine.space, command_id=new_id(), actor="user", run_id=run_id),
        )
        return str(receipt.result["status"])

    def _asked(self, row: Row) -> Flow[Any]:
        return answering.asked(self._engine, self._serde, row)

    def _question(self, run_id: str) -> Flow[Any]:
        return (yield from self._asked((yield from self._row(run_id))))

    def _questions(self, run_id: str) -> Flow[Questions]:
        row = yield from self._row(run_id)
        return (yield from answering.questions(self._engine, self._serde, row))

    def _answer(self, run_id: str, command: Any) -> Flow[str]:
        row = yield from self._row(run_id)
        return (yield from answering.answer(self._engine, self._serde, row, command))

    def _resume(self, run_id: str, value: Any, question_id: str | None, key: str | None, by: str | None) -> Flow[str]:
        row = yield from self._row(run_id)
        said: Any = {"question_id": question_id, "key": key, "by": by}
        return (yield from answering.resume(self._engine, self._serde, row, value, **said))

    def _raise_budget(self, run_id: str, budget: Budget, by: str | None) -> Flow[str]:
        row = yield from self._row(run_id)
        return (yield from answering.raise_budget(self._engine, self._serde, row, budget, by=by))

    def _retry(self, run_id: str, terms: Terms, *, from_start: bool) -> Flow[Handle]:
        row = yield from self._row(run_id)
        return self._handle(
            *(yield from queueing.retry(self._saver, row, terms, self._versions, from_start=from_start))
        )

    def _fork(self, run_id: str, checkpoint_id: str | None, given: Any, terms: Terms) -> Flow[Handle]:
        row = yield from self._row(run_id)
        return self._handle(*(yield from queueing.fork(self._saver, row, checkpoint_id, given, terms, self._versions)))
