"""The rows about calls of the outside world: what the journal does when a node comes to one that was begun before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from runtime_persist.model.states import ANSWERED, AttemptStatus, OperationPhase, OperationStatus, TryStatus
from runtime_persist.recovery.rules import Act, Outside, Rule, Subject

if TYPE_CHECKING:
    from collections.abc import Mapping

UNKNOWN: Final = "OutcomeUnknown"
"""Stored as the type of error of an operation that failed because nothing proves what became of it."""
SAID_NOT: Final = "DidNotHappen"
"""Stored when a person, or the outside, stated that a call did not happen."""
INTERRUPTED: Final = "Interrupted"
"""Stored when LangGraph interrupted the node inside the call."""
HOOK: Final = "hook:"
"""Names of calls that are hooks of an agent begin with it."""

_MAYBE = "the effect, or not: its try started, and nothing inside proves which"
_NOT_SENT = (OperationPhase.PREPARED, OperationPhase.REQUEST_HOOKS, OperationPhase.READY)


def _rule(name: str, situation: str, evidence: str, happened: str, *does: Any) -> Rule:
    act, action, reason, outside = does
    return Rule(name, Subject.CALL, situation, evidence, happened, act, action, reason, outside)


IN_FLIGHT: Final = _rule(
    "call_in_flight",
    "it is in flight",
    "its try is started under the epoch of the live lease",
    "it was sent, or is about to be",
    Act.NOTHING,
    "nothing",
    "its caller says what it came to",
    Outside.NONE,
)
LEFT_OPEN: Final = _rule(
    "call_left_open",
    "it has no outcome, and its run has ended or is to end",
    "it is pending; its run is final, or stopping with nobody who holds it",
    _MAYBE,
    Act.NOTHING,
    "nothing: it stays as it is, and may be said later (op resolve); whoever comes to it in a later run finds it",
    "no further step is taken for a run that ends, and nothing is made up about what it left",
    Outside.NONE,
)
PASSED: Final = _rule(
    "call_passed",
    "it has no outcome, and its task is behind the thread's last checkpoint",
    "it is pending, and older than the checkpoint that the run goes on from",
    _MAYBE,
    Act.NOTHING,
    "nothing: no node comes to it any more; it may be said (op resolve)",
    "its task's identity is one of an older checkpoint",
    Outside.NONE,
)
STORED: Final = _rule(
    "call_stored",
    "its result is stored, and its task has not returned",
    "it succeeded; no result of its task is stored",
    "the effect, once",
    Act.RETURN,
    "the stored result is returned, and nothing is called",
    "a result that is stored is the result, however often the node runs",
    Outside.NONE,
)
ANSWER_SAVED: Final = _rule(
    "call_answer_saved",
    "what the outside said is stored, and was not accepted yet",
    "its phase is raw_saved or response_hooks",
    "the effect, once",
    Act.ACCEPT,
    "the hooks behind it that have no stored decision run, and its answer is accepted; it is not called again",
    "the answer is there; only what is done with it is missing",
    Outside.NONE,
)
NOT_SENT: Final = _rule(
    "call_not_sent",
    "its request is stored, and no try of it was started",
    "it is pending and has no try",
    "nothing",
    Act.START,
    "its first try is started, unless the run is to stop; its ticket is not reserved again",
    "nothing is sent before the start of a try is committed",
    Outside.AT_MOST_ONCE,
)
TRY_FAILED: Final = _rule(
    "call_try_failed",
    "its last try failed, and its retry policy has a further one",
    "it is pending, and its last try is failed",
    "what a call that raised may have done",
    Act.CALL_AGAIN,
    "it is called again when that is due, with the same idempotency key",
    "its caller said, in the commit of the failure, that it is tried again",
    Outside.MAY_REPEAT,
)
FAILED: Final = _rule(
    "call_failed",
    "it failed, and its task has not returned",
    "it is failed, in this run and by this try of its node",
    "what a call that raised may have done",
    Act.RAISE,
    "OperationFailed with what was stored is raised, and nothing is called",
    "the node may have gone on from that failure, so it sees the same one",
    Outside.NONE,
)
FAILED_BEFORE: Final = _rule(
    "call_failed_before",
    "it failed, and its node is there to try again",
    "it is failed in an earlier run, in an attempt that failed, or by an earlier try of its node",
    "what a call that raised may have done",
    Act.CALL_AGAIN,
    "it is called again, with the same idempotency key",
    "a retry of what stands around a call is a retry of the call",
    Outside.MAY_REPEAT,
)
STATED_NOT: Final = _rule(
    "call_stated_not",
    "it is stated that it did not happen, or its node was interrupted inside of it",
    "it is failed with DidNotHappen or Interrupted",
    "nothing, as far as whoever stated it knows",
    Act.CALL_AGAIN,
    "it is called again, with the same idempotency key",
    "that is no answer to the node: the call is still to be made",
    Outside.MAY_REPEAT,
)
GIVEN_UP: Final = _rule(
    "call_given_up",
    "it was given up without an outcome",
    "it is failed with OutcomeUnknown",
    _MAYBE,
    Act.RAISE,
    "OperationFailed is raised, and nothing is called",
    "what was given up stays so, in every run",
    Outside.NONE,
)
UNKNOWN_RETRY: Final = _rule(
    "call_unknown_retry",
    "its try started and nothing proves what became of it; on_unknown is retry",
    "it is pending, and its last try is unknown, or started under an epoch that ended",
    _MAYBE,
    Act.CALL_AGAIN,
    "it is called again with the same idempotency key",
    "it was declared that the outside recognises the key",
    Outside.MAY_REPEAT,
)
UNKNOWN_FAIL: Final = _rule(
    "call_unknown_fail",
    "its try started and nothing proves what became of it; on_unknown is fail",
    "it is pending, and its last try is unknown, or started under an epoch that ended",
    _MAYBE,
    Act.FAIL,
    "it fails as unknown: OperationFailed is raised, and it is never called again",
    "it was declared that doubt counts as failure",
    Outside.NONE,
)
UNKNOWN_ASK: Final = _rule(
    "call_unknown_ask",
    "its try started and nothing proves what became of it; on_unknown is ask",
    "it is pending, and its last try is unknown, or started under an epoch that ended",
    _MAYBE,
    Act.ASK_PERSON,
    "the run waits with the question; what is said counts as its result, or it is called again with the same key",
    "nothing else can know, and a repetition was not declared harmless",
    Outside.ASKS,
)
UNKNOWN_RECONCILE: Final = _rule(
    "call_unknown_reconcile",
    "its try started and nothing proves what became of it; the outside can be asked",
    "it is pending, its last try is unknown, or started under an epoch that ended, and on_unknown is a function",
    _MAYBE,
    Act.ASK_OUTSIDE,
    "the outside is asked: its answer is stored, or it is called again with the same key, or the run waits with the "
    "question",
    "what can be asked is asked before anything is done again",
    Outside.ASKS,
)
HOOK_FETCH: Final = _rule(
    "hook_fetch",
    "a hook started, no decision of it is stored, and it can be fetched",
    "as an unknown call, of a name that begins with hook:, and on_unknown is a function",
    "the hook decided, or not",
    Act.ASK_OUTSIDE,
    "its decision is fetched; when there is none it counts as indeterminate, and the chain goes on without it",
    "a hook is never asked twice about one request",
    Outside.ASKS,
)
HOOK_INDETERMINATE: Final = _rule(
    "hook_indeterminate",
    "a hook started, no decision of it is stored, and it cannot be fetched",
    "as an unknown call, of a name that begins with hook:, and on_unknown is fail",
    "the hook decided, or not",
    Act.FAIL,
    "it counts as indeterminate: the chain goes on without it (or denies, if it was declared so)",
    "a hook is never asked twice about one request",
    Outside.NONE,
)

RULES: Final = (
    IN_FLIGHT, LEFT_OPEN, PASSED, STORED, ANSWER_SAVED, NOT_SENT, TRY_FAILED, GIVEN_UP, STATED_NOT, FAILED_BEFORE,
    FAILED, HOOK_FETCH, HOOK_INDETERMINATE, UNKNOWN_RETRY, UNKNOWN_FAIL, UNKNOWN_RECONCILE, UNKNOWN_ASK,
)  # fmt: skip

_UNKNOWN = {
    "retry": UNKNOWN_RETRY,
    "fail": UNKNOWN_FAIL,
    "reconcile": UNKNOWN_RECONCILE,
    "ask": UNKNOWN_ASK,
}
_HOOKS = {"reconcile": HOOK_FETCH, "fail": HOOK_INDETERMINATE}


def rule_of(row: Mapping[str, Any], on_unknown: str, run_id: str, node_attempt: int = 1) -> Rule:
    """Return the row of the table for an operation that was begun before, when a node comes to it again.

    Args:
        row: the operation, with ``try_status`` of its last try and ``try_attempt_status`` of the attempt that made it.
        on_unknown: what its caller declares: ``ask``, ``retry``, ``fail`` or ``reconcile``.
        run_id: the run that comes to it.
        node_attempt: LangGraph's number of the node's try there.

    """
    if row["status"] == OperationStatus.SUCCEEDED:
        return STORED
    if row["status"] == OperationStatus.FAILED:
        return _failed(row, run_id, node_attempt)
    if row["phase"] in ANSWERED:
        return ANSWER_SAVED
    if row["phase"] in _NOT_SENT and row["try_status"] is None:
        return NOT_SENT
    if row["try_status"] == TryStatus.FAILED:
        return TRY_FAILED
    return unknown(on_unknown, row["name"])


def unknown(on_unknown: str, name: str = "") -> Rule:
    """Return the row for a call of whose last try nothing proves what became of it."""
    if name.startswith(HOOK) and on_unknown in _HOOKS:
        return _HOOKS[on_unknown]
    return _UNKNOWN[on_unknown]


def _failed(row: Mapping[str, Any], run_id: str, node_attempt: int) -> Rule:
    """Tell whether a stored failure is the answer to the call, or the node is there to try again."""
    if row["error_type"] == UNKNOWN:
        return GIVEN_UP
    if row["error_type"] in {SAID_NOT, INTERRUPTED}:
        return STATED_NOT
    its_own = row["run_id"] == run_id and row["node_attempt"] >= node_attempt
    return FAILED if its_own and row["try_attempt_status"] != AttemptStatus.FAILED else FAILED_BEFORE
