"""The rows about execution domains, tasks of the outer graph, and tickets of budgets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from runtime_persist.model.states import OperationStatus
from runtime_persist.recovery.rules import Act, Outside, Rule, Subject

if TYPE_CHECKING:
    from collections.abc import Mapping

DOMAIN_USED: Final = Rule(
    "domain_used",
    Subject.DOMAIN,
    "its attempt works with it",
    "it is open, and the run's lease is live",
    "its attempt writes to it",
    Act.NOTHING,
    "nothing",
    "whoever opened it says what becomes of it",
    Outside.NONE,
)
DOMAIN_LEFT: Final = Rule(
    "domain_left",
    Subject.DOMAIN,
    "nothing proves that it can no longer be written to",
    "it is open, and nobody holds the run's lease",
    "an older attempt may be writing to it",
    Act.REVOKE,
    "its revoker is asked; when that proves nothing, nothing starts until a person says that it is gone",
    "the database refuses an old epoch's writes, and cannot refuse what it writes elsewhere",
    Outside.ENDS,
)
TASK_DONE: Final = Rule(
    "task_done",
    Subject.TASK,
    "it has returned, and the next checkpoint is not stored",
    "its writes to the last checkpoint are stored",
    "what its calls say",
    Act.KEEP,
    "its stored writes are applied; it does not run again, and neither does what it called",
    "its result was committed; only tasks without one are left of the step",
    Outside.NONE,
)
TASK_FAILED: Final = Rule(
    "task_failed",
    Subject.TASK,
    "it ended with an error, and no result of it is stored",
    "an error of it is stored at the last checkpoint, and no result",
    "what its calls say",
    Act.RUN_AGAIN,
    "it runs again under the same id; its calls are found by that, and decided one by one",
    "an error is no result, and a task keeps its identity",
    Outside.MAY_REPEAT,
)
TASK_ASKED: Final = Rule(
    "task_asked",
    Subject.TASK,
    "it asked a person, and no result of it is stored",
    "an interrupt of it is stored at the last checkpoint, and no result",
    "what its calls say",
    Act.RUN_AGAIN,
    "it runs again under the same id once there is an answer; its calls are found by that, and decided one by one",
    "a question is no result, and a task keeps its identity",
    Outside.MAY_REPEAT,
)
TICKET_HELD: Final = Rule(
    "ticket_held",
    Subject.TICKET,
    "it is reserved for a call that has no outcome",
    "the ticket is reserved, and its call is pending",
    "see its call",
    Act.KEEP,
    "it stays reserved for that call, whose further tries take no other",
    "reserving twice would count one call twice",
    Outside.NONE,
)
TICKET_OWED: Final = Rule(
    "ticket_owed",
    Subject.TICKET,
    "it is reserved for a call that has ended",
    "the ticket is reserved, and its call is not pending",
    "see its call",
    Act.SETTLE,
    "it is consumed when the node comes to its call again (of a call that is made again it stays reserved)",
    "what was called counts, once",
    Outside.NONE,
)

RULES: Final = (DOMAIN_USED, DOMAIN_LEFT, TASK_DONE, TASK_FAILED, TASK_ASKED, TICKET_HELD, TICKET_OWED)


def domain_rule(*, live: bool) -> Rule:
    """Return the row of an open domain."""
    return DOMAIN_USED if live else DOMAIN_LEFT


def task_rule(*, done: bool, asked: bool) -> Rule:
    """Return the row of a task of which something is stored at the last checkpoint."""
    if done:
        return TASK_DONE
    return TASK_ASKED if asked else TASK_FAILED


def ticket_rule(ticket: Mapping[str, Any]) -> Rule:
    """Return the row of a reserved ticket (with the ``operation_status`` of its call)."""
    return TICKET_HELD if ticket["operation_status"] == OperationStatus.PENDING else TICKET_OWED
