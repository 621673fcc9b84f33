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
    """Store the answer (encoded payload reference) and queue the run. Refused: the run is not waiting."""

    run_id: str
    answer: bytes
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
    run = taking.taken(before, None, locked.now_us)
    run.tell("run.answered")
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
)
