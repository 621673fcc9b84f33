"""What a person says to a run that waits: the answer to a question, or what became of an operation."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import ormsgpack
from langgraph.types import Command

from runtime_persist.commands.answer_question import AnswerQuestion
from runtime_persist.commands.control_finalize_operation import ControlFinalizeOperation
from runtime_persist.commands.raise_budget import RaiseBudget
from runtime_persist.commands.resolve_unknown import ResolveUnknown
from runtime_persist.engine import Engine, Flow, payloads
from runtime_persist.engine.payloads import dumped
from runtime_persist.errors import (
    AlreadyAnswered,
    CommandMismatch,
    IdempotencyMismatch,
    IllegalTransition,
    InvalidInput,
    OperationNotFound,
    QuestionNotFound,
    RuntimePersistError,
)
from runtime_persist.model import limits
from runtime_persist.model.budgets import Budget
from runtime_persist.model.ids import is_name, is_short_name, new_id
from runtime_persist.model.keys import fingerprint
from runtime_persist.model.questions import Question, QuestionKind, questions_of
from runtime_persist.model.states import RunStatus
from runtime_persist.queries import checkpoints as checkpoint_queries
from runtime_persist.queries import control as control_queries
from runtime_persist.queries import operations as operation_queries
from runtime_persist.queries import runs as run_queries

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from langgraph.checkpoint.serde.base import SerializerProtocol

    from runtime_persist.plan import Row

_INTERRUPT_ID_CHARS = 32
_IDS_IN_EVENT = 16


def asked(engine: Engine, serde: SerializerProtocol, row: Row) -> Flow[Any]:
    """Return the question of a run (its row) as it was stored, None when it asks none."""
    if row["question"] is None:
        return None
    return (yield from payloads.decode(engine, serde, row["question"], f"the question of run {row['run_id']}"))


def questions(engine: Engine, serde: SerializerProtocol, row: Row) -> Flow[list[Question]]:
    """Return what a run (its row) asks, one question for each interrupt."""
    return questions_of(row, (yield from asked(engine, serde, row)))


def resume(
    engine: Engine,
    serde: SerializerProtocol,
    row: Row,
    value: Any,
    *,
    question_id: str | None,
    key: str | None,
    by: str | None,
) -> Flow[str]:
    """Answer what a run asks with a value, a map of them by interrupt id, or a budget; return the run's status."""
    if key is not None and not is_short_name(key):
        msg = f"idempotency_key must be a non-empty text of at most {limits.NAME_BYTES_MAX} bytes, not {key!r:.100}"
        raise InvalidInput(msg)
    actor_of(by)
    if isinstance(value, Budget):
        return (yield from _more(engine, serde, row, value, question_id=question_id, key=key, by=by))
    said = fingerprint(b"resume", (question_id or "").encode(), *_bytes_of(engine, serde, value))
    if key is not None and (yield from _is_known(engine, _command_id(row["run_id"], key))):
        # Delivered again: it answers with its receipt, whatever the run asks by now.
        return (yield from _commit(engine, serde, row, None, said=said, key=key, by=by))
    open_ = [one for one in (yield from questions(engine, serde, row)) if question_id in {None, one.question_id}]
    try:
        command, ids = _answer_to(row, open_, value)
    except (IllegalTransition, QuestionNotFound) as refused:
        named = _named(value)
        raise (yield from _refusal(engine, row["run_id"], refused, question_id, named)) from refused
    fields: dict[str, Any] = {"question_id": open_[0].question_id, "interrupt_ids": ids[:_IDS_IN_EVENT]}
    return (yield from _commit(engine, serde, row, command, said=said, key=key, by=by, **fields))


def answer(engine: Engine, serde: SerializerProtocol, row: Row, command: Any) -> Flow[str]:
    """Store the answer to what a run (its row) asks, at the checkpoint it asks at; return the run's status."""
    said = fingerprint(b"answer", *_bytes_of(engine, serde, command))
    return (yield from _commit(engine, serde, row, command, said=said))


def raise_budget(engine: Engine, serde: SerializerProtocol, row: Row, budget: Budget, *, by: str | None) -> Flow[str]:
    """Raise the limits of a run (its row), which goes on if it asked for that; return its status."""
    given: Any = budget  # not everybody's code is type-checked
    if not isinstance(given, Budget):
        msg = f"a budget is a runtime_persist.Budget, not {given!r}"
        raise InvalidInput(msg)
    asks = [one for one in (yield from questions(engine, serde, row)) if one.kind is QuestionKind.BUDGET]
    return (yield from _raised(engine, row, budget, asks[0].question_id if asks else None, None, by))


def _more(
    engine: Engine,
    serde: SerializerProtocol,
    row: Row,
    budget: Budget,
    *,
    question_id: str | None,
    key: str | None,
    by: str | None,
) -> Flow[str]:
    """Answer a run that asks for more: raise its budget, and let it go on.

    Raises:
        QuestionNotFound: it asks something else; AlreadyAnswered, IllegalTransition: it asks nothing (any more).

    """
    if key is not None and (yield from _is_known(engine, _command_id(row["run_id"], key))):
        return (yield from _raised(engine, row, budget, question_id, key, by))
    open_ = [one for one in (yield from questions(engine, serde, row)) if question_id in {None, one.question_id}]
    if open_ and open_[0].kind is QuestionKind.BUDGET:
        return (yield from _raised(engine, row, budget, open_[0].question_id, key, by))
    if open_:
        msg = f"run {row['run_id']} asks for something else ({open_[0].kind.value}); runs.raise_budget raises it anyway"
        raise QuestionNotFound(msg, run_id=row["run_id"])
    msg = f"run {row['run_id']} is {row['status']} and does not ask for more; runs.raise_budget raises it anyway"
    refused = IllegalTransition(msg, run_id=row["run_id"], status=row["status"])
    raise (yield from _refusal(engine, row["run_id"], refused, question_id, ()))


def _raised(
    engine: Engine, row: Row, budget: Budget, question_id: str | None, key: str | None, by: str | None
) -> Flow[str]:
    command = RaiseBudget(
        space=engine.space,
        command_id=new_id() if key is None else _command_id(row["run_id"], key),
        actor=actor_of(by),
        run_id=row["run_id"],
        limits=budget.limits(),
        question_id=question_id,
    )
    try:
        receipt = yield engine.coordinator.commit(command)
    except CommandMismatch as error:
        msg = f"idempotency key {key!r} was already used for another answer to run {row['run_id']}"
        raise IdempotencyMismatch(msg, idempotency_key=key) from error
    return str(receipt.result["status"])


def _commit(
    engine: Engine,
    serde: SerializerProtocol,
    row: Row,
    command: Any,
    *,
    said: bytes,
    key: str | None = None,
    by: str | None = None,
    **fields: Any,
) -> Flow[str]:
    head = yield engine.coordinator.read(
        "read_head",
        lambda: checkpoint_queries.head(engine.space, row["thread_id"]),
    )
    data, blobs = payloads.encode(engine, serde, {"checkpoint_id": head, "command": command})
    try:
        receipt = yield engine.coordinator.commit(
            AnswerQuestion(
                space=engine.space,
                command_id=new_id() if key is None else _command_id(row["run_id"], key),
                actor=actor_of(by),
                run_id=row["run_id"],
                answer=data,
                said=said,
                owner=engine.owner,
                blobs=blobs,
                **fields,
            ),
        )
    except CommandMismatch as error:
        msg = f"idempotency key {key!r} was already used for another answer to run {row['run_id']}"
        raise IdempotencyMismatch(msg, idempotency_key=key) from error
    except IllegalTransition as refused:  # somebody was quicker
        question_id = fields.get("question_id")
        raise (yield from _refusal(engine, row["run_id"], refused, question_id, ())) from refused
    return str(receipt.result["status"])


def _answer_to(row: Row, open_: Sequence[Question], value: Any) -> tuple[Any, tuple[str, ...]]:
    """Return what the graph resumes with, and the ids of the interrupts that are answered.

    Raises:
        IllegalTransition: the run does not wait for an answer.
        QuestionNotFound: it does not ask what is answered.
        InvalidInput: the answer does not say which question it is for, or is none.

    """
    run_id = row["run_id"]
    if not open_:
        msg = (
            f"run {run_id} is {row['status']}; it waits for no answer"
            if row["question"] is None
            else (f"run {run_id} does not ask that question")
        )
        raise IllegalTransition(msg, run_id=run_id, status=row["status"])
    kind = open_[0].kind
    if kind is QuestionKind.UNKNOWN_OPERATION:
        msg = (
            f"run {run_id} asks what became of operation {open_[0].operation_id}; say it with "
            "runs.resolve(operation_id, happened=…)"
        )
        raise QuestionNotFound(msg, run_id=run_id, operation_id=open_[0].operation_id)
    if kind is QuestionKind.BUDGET:
        spent = (open_[0].budget or {}).get("budget")
        msg = f"run {run_id} has spent its {spent}; raise that with runs.raise_budget(run_id, Budget(…)), or cancel it"
        raise QuestionNotFound(msg, run_id=run_id)
    if kind is QuestionKind.BREAKPOINT:
        if value is not None:
            msg = f"run {run_id} stands before {', '.join(open_[0].next)} and asks nothing; resume it without a value"
            raise QuestionNotFound(msg, run_id=run_id)
        return None, ()
    ids = [one.interrupt_id or "" for one in open_]
    given = _mapped(run_id, ids, value)
    return Command(resume=given), tuple(given)


def _mapped(run_id: str, ids: Sequence[str], value: Any) -> Mapping[str, Any]:
    """Return an answer by interrupt id."""
    named = _named(value)
    if named or (isinstance(value, dict) and value.keys() & set(ids)):
        unknown = [name for name in value if name not in ids]
        if unknown:
            msg = f"run {run_id} does not ask {', '.join(map(repr, unknown))}; it asks {', '.join(ids)}"
            raise QuestionNotFound(msg, run_id=run_id, interrupt_ids=unknown, asked=list(ids))
        return dict(value)
    if len(ids) > 1:
        msg = f"run {run_id} asks {len(ids)} questions; answer with a map of values by interrupt id: {', '.join(ids)}"
        raise InvalidInput(msg, run_id=run_id, asked=list(ids))
    if value is None:
        msg = f"run {run_id} needs a value as answer; to answer None, name the question: {{{ids[0]!r}: None}}"
        raise InvalidInput(msg, run_id=run_id)
    return {ids[0]: value}


def _named(value: Any) -> tuple[str, ...]:
    """Return the interrupt ids that an answer names: the keys of a map all of whose keys look like ids."""
    if not isinstance(value, dict) or not all(_is_id(name) for name in value):
        return ()
    return tuple(value)


def _is_id(name: Any) -> bool:
    return isinstance(name, str) and len(name) == _INTERRUPT_ID_CHARS and not set(name) - set("0123456789abcdef")


def _refusal(
    engine: Engine, run_id: str, refused: RuntimePersistError, question_id: str | None, named: Sequence[str]
) -> Flow[RuntimePersistError]:
    """Return what somebody is told whose answer was refused: who answered before, and when, if anybody did.

    ``named``: ids of interrupts, or of the operation, that the answer was for.
    """
    rows: Sequence[Row] = yield engine.coordinator.read(
        "read_answers", lambda: control_queries.answers(engine.space, run_id)
    )
    for row in rows:
        said = ormsgpack.unpackb(row["payload"]) if row["payload"] is not None else {}
        answered = {*said.get("interrupt_ids", ()), said.get("operation_id")}
        if row["attempt_id"] == question_id if question_id is not None else not named or answered & set(named):
            return _already(run_id, row, question_id=row["attempt_id"], answered=sorted(answered & set(named)))
    return refused


def _already(run_id: str, row: Row, **details: Any) -> AlreadyAnswered:
    at = datetime.fromtimestamp(row["created_us"] / 1_000_000, UTC).isoformat(timespec="milliseconds")
    return AlreadyAnswered(
        f"the question of run {run_id} was answered at {at} by {row['actor']}; that answer counts",
        run_id=run_id,
        answered_us=row["created_us"],
        answered_by=row["actor"],
        **details,
    )


def _is_known(engine: Engine, command_id: str) -> Flow[bool]:
    known: bool = yield engine.coordinator.read(
        "read_is_known", lambda: control_queries.is_known(engine.space, command_id)
    )
    return known


def _command_id(run_id: str, key: str) -> str:
    return f"answer:{run_id}:{key}"


def actor_of(by: str | None) -> str:
    """Return who is recorded as the one who said it."""
    if by is None:
        return "user"
    if not is_name(by) or len(by) > limits.ACTOR_CHARS_MAX:
        msg = f"by is a text of at most {limits.ACTOR_CHARS_MAX} characters, not {by!r}"
        raise InvalidInput(msg)
    return f"user:{by}"


def _bytes_of(engine: Engine, serde: SerializerProtocol, value: Any) -> tuple[bytes, bytes]:
    kind, data = dumped(serde, value, "the answer", engine.max_value_bytes)
    return kind.encode(), data


def resolve(
    engine: Engine,
    serde: SerializerProtocol,
    operation_id: str,
    *,
    happened: bool,
    result: Any,
    by: str | None,
) -> Flow[str]:
    """Store what became of an operation whose outcome is unknown; return its run's status."""
    row: Mapping[str, Any] | None = yield engine.coordinator.read(
        "read_operation",
        lambda: operation_queries.by_id(engine.space, operation_id),
    )
    if row is None:
        msg = f"there is no operation {operation_id!r} in space {engine.space!r}"
        raise OperationNotFound(msg, operation_id=operation_id)
    # The run that asks is the thread's waiting one: in a copied thread that is not the run that tried.
    thread_id = row["thread_id"]
    found = yield engine.coordinator.read("read_open_runs", lambda: run_queries.open_of_thread(engine.space, thread_id))
    asking = [one["run_id"] for one in found if one["status"] == RunStatus.WAITING_APPROVAL]
    data, blobs = payloads.encode(engine, serde, result) if happened else (None, ())
    run_id = asking[0] if asking else row["try_run_id"]
    # A run that has ended asks nobody; what it left open may still be said.
    ended = not asking and run_id not in {one["run_id"] for one in found}
    command = ControlFinalizeOperation if ended else ResolveUnknown
    try:
        receipt = yield engine.coordinator.commit(
            command(
                space=engine.space,
                command_id=new_id(),
                actor=actor_of(by),
                run_id=run_id,
                operation_id=operation_id,
                happened=happened,
                result=data,
                outcome=fingerprint(data or b""),
                owner=engine.owner,
                blobs=blobs,
            ),
        )
    except IllegalTransition as refused:
        raise (yield from _refusal(engine, run_id, refused, None, (operation_id,))) from refused
    return str(receipt.result["run_status"])
