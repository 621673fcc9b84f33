"""What has become of a person's answers: which of them tasks have taken up, and which are to be given again."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from langgraph.types import Command

from runtime_persist.adapters.workflow import encoding
from runtime_persist.engine import payloads
from runtime_persist.queries import control as control_queries
from runtime_persist.queries import runs as run_queries

if TYPE_CHECKING:
    from runtime_persist.engine import Engine, Flow, OwnedRun
    from runtime_persist.plan import Row

_INTERRUPT = "__interrupt__"


def resumed(engine: Engine, thread_id: str, run_id: str, *, is_retry: bool) -> Flow[list[Row]]:
    """Read which tasks of a run took up answers (``since``: since the run last waited for a person).

    A retry goes on where the run that it retries stopped: what that one's tasks took up counts as well, unless the
    retry has waited since.
    """
    space, runs = engine.space, [run_id]
    if is_retry:
        runs = yield engine.coordinator.read("read_retried", lambda: control_queries.retried(space, run_id))
    found: list[Row] = []
    for one in runs:
        found += yield engine.coordinator.read(
            "read_resumes", partial(run_queries.resumes, space, thread_id, one, encoding.RESUME)
        )
    return found


def hides(taken: list[Row]) -> bool:
    """Return whether an answer that is stored at the head answers no question any more.

    A task has taken it up (LangGraph would give it to that task's next question too), or the run waits once more.
    """
    since = [row for row in taken if row["since"]]
    return any(row["task_id"] != encoding.NULL_TASK for row in since) or (bool(taken) and not since)


def left_of(engine: Engine, owned: OwnedRun, command: Any, taken: list[Row]) -> Flow[Command[Any] | None]:
    """Return the answers of a map that no task has taken up (None: that is not sure, or there are none).

    The process died when some of the tasks that had asked had their answers and others had not. A task that took one
    up is recognised by the question it had stored; when it has asked another one since, nothing tells which was the
    first, and giving an answer twice would answer the other one: then all that is open is asked again.
    """
    answers = getattr(command, "resume", None)
    tasks = {row["task_id"] for row in taken if row["since"] and row["task_id"] != encoding.NULL_TASK}
    if not isinstance(answers, dict) or not tasks:
        return None
    lease = owned.lease
    rows = yield owned.coordinator.read(
        "read_asked",
        lambda: control_queries.asked(lease.space, lease.thread_id, _INTERRUPT, sorted(tasks)),
    )
    where = f"a question of run {lease.run_id}"
    known: set[str] = set()
    for row in rows:
        for one in (yield from payloads.decode(engine, owned.serde, row["value"], where)):
            if one.id not in answers:
                return None
            known.add(one.id)
    left = {name: value for name, value in answers.items() if name not in known}
    return Command(resume=left) if left and len(rows) == len(tasks) else None
