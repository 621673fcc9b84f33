"""The rows about runs, and the questions that workers and claiming commands ask them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from runtime_persist.model.lease import MANUAL_GRAPH
from runtime_persist.model.retry import RetryPolicy
from runtime_persist.model.states import ACTIVE_RUN, FINAL_RUN, AttemptStatus, Control, LeasePhase, RunStatus
from runtime_persist.recovery.rules import Act, Outside, Rule, Subject

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from runtime_persist.recovery.found import Found

_NOTHING_RAN = "nothing of this attempt"
_JOURNALLED = "what its calls did (see each); what its nodes did beside them, since the last checkpoint"


def _rule(name: str, situation: str, evidence: str, happened: str, *does: Any) -> Rule:
    act, action, reason, outside = does
    return Rule(name, Subject.RUN, situation, evidence, happened, act, action, reason, outside)


FINAL: Final = _rule(
    "run_final",
    "it has ended",
    "its status is final",
    "what its calls say; a late result changes nothing",
    Act.NOTHING,
    "nothing: it may be looked at, retried as a new run, and cleaned up",
    "final states never change",
    Outside.NONE,
)
HELD: Final = _rule(
    "run_held",
    "somebody holds it",
    "its lease is not released, and runs out later than now by the database's clock",
    "its attempt is at work",
    Act.NOTHING,
    "nothing while its lease is renewed",
    "a live lease alone may commit; its holder is never revoked while it renews",
    Outside.NONE,
)
STOPPING_HELD: Final = _rule(
    "run_stopping_held",
    "it is to stop, and somebody holds it",
    "its control is stopping, and its lease is live",
    "calls in flight may arrive; no new one is begun",
    Act.NOTHING,
    "nothing: its holder ends it once it has stopped",
    "results of work in flight are still accepted; its end waits for proof that it stopped",
    Outside.NONE,
)
TO_END: Final = _rule(
    "run_to_end",
    "it is to stop, or its deadline has passed, and nobody holds it",
    "its control is stopping, or deadline_us is past by the database's clock; its lease is released or ran out",
    _JOURNALLED,
    Act.END,
    "it is claimed only to be ended, as what stopped it says (cancelled, timed_out); no node runs",
    "a run that is stopped takes no further step; the first reason decides how it ends",
    Outside.NONE,
)
MANUAL: Final = _rule(
    "run_manual_left",
    "the process that held its lease by hand is gone",
    "its graph is that of leases, and the lease ran out",
    "what that process did",
    Act.WAIT,
    "nothing until somebody ends it (run cancel) or takes the thread anew",
    "it has no graph, so there is nothing to go on with",
    Outside.NONE,
)
NOT_STARTED: Final = _rule(
    "run_not_started",
    "it was claimed, and certainly not started",
    "its attempt has no start fence, and the lease ran out",
    _NOTHING_RAN,
    Act.CLAIM,
    "the same attempt is claimed again; neither a retry nor a takeover is counted",
    "nothing is sent to a runtime before the start fence is committed",
    Outside.AT_MOST_ONCE,
)
NOT_STARTED_AGAIN: Final = _rule(
    "run_not_started_again",
    "a further attempt of it was claimed, and certainly not started",
    "its attempt is not the first one and has no start fence, and the lease ran out",
    "what its earlier attempts' calls say; nothing of this attempt",
    Act.CLAIM,
    "the same attempt is claimed again and goes on at the last checkpoint; neither a retry nor a takeover is counted",
    "nothing is sent to a runtime before the start fence is committed",
    Outside.MAY_REPEAT,
)
CRASH_LOOP: Final = _rule(
    "run_crash_loop",
    "it was left, and its workers crashed too often in a row without a new checkpoint or operation",
    "takeovers would be more than its policy's max_takeovers, and its last epoch stored nothing",
    _JOURNALLED,
    Act.GIVE_UP,
    "it ends as failed (crash_loop) and no node runs; its runtime is asked before, if it has one that can say",
    "what kills every worker kills the next one too",
    Outside.NONE,
)
LEFT_WITH_RUNTIME: Final = _rule(
    "run_left_with_runtime",
    "it may have gone on: a runtime executes its attempt, and its worker stopped renewing the lease",
    "its attempt has a start fence and a handle, and the lease ran out",
    "what its calls did (see each); it may even have ended: its runtime may know",
    Act.ASK_RUNTIME,
    "it is claimed under the next epoch and its runtime is asked: a proved end counts, else it is taken over",
    "what can be asked is asked before anything is done again",
    Outside.MAY_REPEAT,
)
LEFT: Final = _rule(
    "run_left",
    "it may have started, and nothing proves what became of it: its worker stopped renewing the lease",
    "its attempt has a start fence and no end, or is lost; the lease ran out or was released lost",
    _JOURNALLED,
    Act.TAKE_OVER,
    "it is claimed under the next epoch, what older attempts opened is revoked, and a new attempt goes on at its last "
    "checkpoint",
    "time alone never proves that it did not run, so it is never queued again: tasks without a result run again, and "
    "their calls are decided one by one",
    Outside.MAY_REPEAT,
)
QUEUED: Final = _rule(
    "run_queued",
    "it waits for a worker",
    "its status is queued, and no attempt of it has ended",
    "nothing of it",
    Act.CLAIM,
    "a worker claims it in its turn, writes the start fence and starts it with its input",
    "nothing of it was ever sent to a runtime",
    Outside.AT_MOST_ONCE,
)
RESUMES: Final = _rule(
    "run_resumes",
    "it waits for a worker that goes on with it",
    "its status is queued, and an earlier attempt of it has ended",
    "what its earlier attempts' calls say; nothing is in flight",
    Act.CLAIM,
    "a worker claims it in its turn for a new attempt, which goes on at its last checkpoint",
    "every earlier attempt ended by itself, at a checkpoint; tasks without a result run again from their beginning",
    Outside.MAY_REPEAT,
)
RETRY_DUE: Final = _rule(
    "run_retry_due",
    "its attempt failed, and the next one is due",
    "its status is retry_wait and next_attempt_us is past",
    "the failed attempt's calls, each as it says",
    Act.CLAIM,
    "a worker claims it for a new attempt, which goes on at its last checkpoint",
    "the failure is proved, and its policy allows a further attempt",
    Outside.MAY_REPEAT,
)
RETRY_LATER: Final = _rule(
    "run_retry_later",
    "its attempt failed, and the next one is not due yet",
    "its status is retry_wait and next_attempt_us is to come",
    "the failed attempt's calls, each as it says",
    Act.WAIT,
    "nothing until then (run now ends the wait)",
    "its policy says when",
    Outside.NONE,
)
ASKS: Final = _rule(
    "run_asks",
    "it waits for a person",
    "its status is waiting_approval; its attempt yielded, and the lease is released",
    "what its calls say; nothing is in flight",
    Act.WAIT,
    "nothing until somebody answers: that queues it",
    "only a person knows, or may decide",
    Outside.ASKS,
)
CREATED: Final = _rule(
    "run_created",
    "it was written down and never queued",
    "its status is created",
    "nothing",
    Act.WAIT,
    "nothing until whoever made it queues it",
    "nobody has asked for it to be executed",
    Outside.NONE,
)

RULES: Final = (
    FINAL, STOPPING_HELD, HELD, TO_END, MANUAL, NOT_STARTED, NOT_STARTED_AGAIN, CRASH_LOOP, LEFT_WITH_RUNTIME, LEFT,
    QUEUED, RESUMES, RETRY_DUE, RETRY_LATER, ASKS, CREATED,
)  # fmt: skip
"""In the order in which they are looked at."""


# --- what claiming commands and workers ask -------------------------------------------------------------------------


def is_takeover(status: str, *, past_start_fence: bool) -> bool:
    """Return whether whoever claims a run takes over what may have started.

    Behind the start fence only evidence or a takeover says what became of an attempt. ``running`` without an open
    attempt: a report of its runtime brought a lost one back, and it fell silent again.
    """
    return past_start_fence or status in {RunStatus.LOST, RunStatus.RUNNING}


def counted(takeovers: int, *, progressed: bool) -> int:
    """Return the takeovers in a row, the next one included; a checkpoint or operation of the last epoch begins anew."""
    return 1 if progressed else takeovers + 1


def is_crash_loop(takeovers: int, retry_policy: str | None) -> bool:
    """Return whether that many takeovers in a row without progress are too many for the run's policy."""
    return takeovers > RetryPolicy.decoded(retry_policy).max_takeovers


def asked_attempt(attempts: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """Return the attempt whose runtime is asked what became of it (None: there is none that could say).

    Args:
        attempts: of the run, oldest first. It is the last one past its start fence, if nothing proves its end.

    """
    started = [row for row in attempts if row["start_requested_us"] is not None]
    last = started[-1] if started else None
    if last is None or last["handle"] is None:
        return None
    return last if last["ended_us"] is None or last["status"] == AttemptStatus.LOST else None


def steps(taken: Mapping[str, Any]) -> tuple[Act, ...]:
    """Return what whoever has claimed a run does, one behind the other, before (or instead of) starting an attempt.

    Args:
        taken: the claim's answer (:class:`runtime_persist.commands.claim_run.ClaimRun`).

    """
    found: list[Act] = []
    if taken["domains_open"]:
        found.append(Act.REVOKE)
    if taken["control"] != Control.OPEN:
        return (*found, Act.END)
    if taken["takeover"]:
        found.append(Act.ASK_RUNTIME)
    if taken["crash_loop"]:
        return (*found, Act.GIVE_UP)
    return (*found, Act.TAKE_OVER if taken["takeover"] else Act.CLAIM)


# --- which row a run is in ------------------------------------------------------------------------------------------


def is_live(run: Mapping[str, Any]) -> bool:
    """Return whether somebody holds the run's lease at the moment of the read (``now_us``)."""
    return bool(run["phase"] != LeasePhase.RELEASED and run["expires_us"] > run["now_us"])


def rule_of(found: Found) -> Rule:
    """Return the row that a run is in."""
    run = found.run
    status = RunStatus(run["status"])
    if status in FINAL_RUN:
        return FINAL
    stopping = run["control"] == Control.STOPPING
    if is_live(run):
        return STOPPING_HELD if stopping else HELD
    overdue = run["deadline_us"] is not None and run["deadline_us"] <= run["now_us"]
    if stopping or overdue:
        return TO_END
    return _left(found) if status in ACTIVE_RUN else _waiting(found, status)


def _left(found: Found) -> Rule:
    run = found.run
    current = found.attempt
    fenced = current is not None and current["start_requested_us"] is not None and current["ended_us"] is None
    if run["graph"] == MANUAL_GRAPH:
        return MANUAL
    if not is_takeover(run["status"], past_start_fence=fenced):
        return NOT_STARTED_AGAIN if _went_on_before(found) else NOT_STARTED
    if is_crash_loop(counted(run["takeovers"], progressed=found.progressed), run["retry_policy"]):
        return CRASH_LOOP
    return LEFT if asked_attempt(found.attempts) is None else LEFT_WITH_RUNTIME


def _waiting(found: Found, status: RunStatus) -> Rule:
    run = found.run
    if status is RunStatus.RETRY_WAIT:
        return RETRY_DUE if (run["next_attempt_us"] or 0) <= run["now_us"] else RETRY_LATER
    if status is RunStatus.QUEUED:
        return RESUMES if _went_on_before(found) else QUEUED
    return ASKS if status is RunStatus.WAITING_APPROVAL else CREATED


def _went_on_before(found: Found) -> bool:
    return any(row["start_requested_us"] is not None for row in found.attempts)
