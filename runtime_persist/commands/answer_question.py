"""answer_question: a person answers what a waiting run asked; the run is queued and resumes with the answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from runtime_persist.commands.parts import content, run_rows, taking
from runtime_persist.commands.parts.spec import ColdCommand, Command, Decision, Locked, RunChange
from runtime_persist.errors import IllegalTransition, InvariantBroken
from runtime_persist.model.guards import CONTROL
from runtime_persist.model.states import RunStatus
from runtime_persist.plan import done

if TYPE_CHECKING:
    from runtime_persist.model.payload import Blob
    from runtime_persist.plan import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerQuestion(Command):
    """Store the answer and queue the run. Answer: ``status``.

    Attributes:
        run_id: the run that waits.
        answer: encoded payload reference of what it resumes with, and of the checkpoint it was asked at.
        said: fingerprint of what the person said: the same again under one command id is the same answer.
        question_id: the question that is answered, which is the attempt that asked (None: the one that is open).
        interrupt_ids: what of it is answered, for the event.

    Refused: the run is not waiting, or asks something else by now (IllegalTransition).

    """

    run_id: str
    answer: bytes
    said: bytes
    question_id: str | None = None
    interrupt_ids: tuple[str, ...] = ()
    owner: str = ""
    blobs: tuple[Blob, ...] = ()


def decide(command: AnswerQuestion, locked: Locked) -> Plan[Decision]:
    """Return the run queued with its answer."""
    before = locked.run
    if before is None:
        raise InvariantBroken
    if before["status"] != RunStatus.WAITING_APPROVAL:  # a running run could become queued too: by yielding
        msg = f"run {command.run_id} is {before['status']}; it waits for no answer"
        raise IllegalTransition(msg, run_id=command.run_id, status=before["status"])
    if command.question_id not in {None, before["attempt_id"]}:
        msg = f"run {command.run_id} asks another question by now; read runs.questions again"
        raise IllegalTransition(msg, run_id=command.run_id, status=before["status"])
    run = taking.taken(before, None, locked.now_us)
    run.tell("run.answered", **({"interrupt_ids": list(command.interrupt_ids)} if command.interrupt_ids else {}))
    run.move(RunStatus.QUEUED, answer=command.answer, question=None, queued_us=locked.now_us)
    return done(
        Decision(
            {"status": run.run["status"]},
            runs=[RunChange(before, run.run, run.events)],
            effects=content.store(command.space, command.owner, command.blobs),
        )
    )


SPEC = ColdCommand(
    name="answer_question",
    dto=AnswerQuestion,
    guard=CONTROL,
    decide=decide,
    statements=(run_rows.SAVE_RUN, content.STORE_BLOB),
    fingerprint=lambda command: command.said,
)
