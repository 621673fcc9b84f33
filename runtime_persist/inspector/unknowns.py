"""What shows where a run stands, fact by fact, and what is not known of it, with the question that would answer it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict

from runtime_persist.inspector.spelling import ago, at
from runtime_persist.model.states import ANSWERED, FINAL_RUN, RunStatus, TryStatus

if TYPE_CHECKING:
    from collections.abc import Iterator

    from runtime_persist.inspector.situations import Facts

_UNPROVED = frozenset({TryStatus.STARTED, TryStatus.UNKNOWN})


class Unknown(BaseModel):
    """Something that no row proves.

    Attributes:
        what: is not known.
        question: what answers it, and whom to ask.

    """

    model_config = ConfigDict(frozen=True)

    what: str
    question: str


def evidence(facts: Facts) -> list[str]:
    """Return the rows that show where a run stands, oldest fact first. Moments are of the database's clock, in UTC."""
    run, attempt, now = facts.run, facts.standing.attempt, facts.now_us
    said = [f"written down {at(run['created_us'])} ({ago(run['created_us'], now)})"]
    if attempt is not None:
        said += _begun(attempt, now)
        seen = attempt["observed_us"]
        if seen is not None:
            said.append(f"last evidence: {attempt['observed_state']} {_moment(seen, now)}")
        if attempt["ended_us"] is not None:
            reason = attempt["error_code"] or attempt["termination_reason"] or attempt["status"]
            said.append(f"that attempt ended {_moment(attempt['ended_us'], now)}: {reason}")
    if facts.held:
        kept = "holds until" if facts.live else "ran out"
        said.append(f"lease of epoch {run['epoch']} ({run['phase']}) {kept} {_moment(run['expires_us'], now)}")
    if run["finished_us"] is not None:
        said.append(f"ended as {run['status']} {_moment(run['finished_us'], now)}")
    return said


def _begun(attempt: Any, now_us: int) -> list[str]:
    named = f"attempt {attempt['attempt_no']} ({attempt['cause']})"
    if attempt["epoch"] is None:
        return [f"{named} is not claimed yet"]
    claimed = f"claimed by {attempt['worker_id'] or '–'} as {named}, epoch {attempt['epoch']}"
    fence = attempt["start_requested_us"]
    return [
        f"{claimed}, {_moment(attempt['claimed_us'], now_us)}",
        "no start fence: nothing of this attempt was started"
        if fence is None
        else f"start fence {_moment(fence, now_us)}: from then on it may have run",
    ]


def _moment(us: int | None, now_us: int) -> str:
    return f"{at(us)} ({ago(us, now_us)})" if us is not None else "at no moment that is recorded"


def unknowns(facts: Facts) -> list[Unknown]:
    """Return what no row proves."""
    return [*_of_worker(facts), *_of_domains(facts), *_of_operations(facts), *_of_others(facts)]


def _of_worker(facts: Facts) -> Iterator[Unknown]:
    attempt = facts.standing.attempt or {}
    left = not facts.live or facts.status is RunStatus.LOST  # a live lease of a lost run is of who takes it over
    if facts.status in FINAL_RUN or not left or not facts.fenced:
        return
    worker = attempt.get("worker_id") or facts.run["worker_id"] or "its worker"
    yield Unknown(
        what=f"whether the code of attempt {attempt['attempt_no']} still runs: {worker} renewed its lease no more",
        question=f"does the process of {worker} live? Once a newer epoch than {attempt['epoch']} is claimed, what it "
        "commits is refused",
    )


def _of_domains(facts: Facts) -> Iterator[Unknown]:
    if facts.live or facts.status in FINAL_RUN:
        return
    for domain in facts.standing.domains:
        yield Unknown(
            what=f"whether {domain['kind']} domain {domain['domain_id']} can still be written to",
            question=f"does it exist still? domain list {facts.run['run_id']} says where it is",
        )


def _of_operations(facts: Facts) -> Iterator[Unknown]:
    run = facts.run
    for row in facts.standing.pending:
        in_flight = facts.live and row["try_epoch"] == run["epoch"]
        if row["try_status"] not in _UNPROVED or row["phase"] in ANSWERED or in_flight:
            continue
        began = _moment(row["try_started_us"], facts.now_us)
        yield Unknown(
            what=f"whether {_call(row)} happened: try {row['try_no']} began {began}, and no outcome was committed",
            question=f"does the outside know {_named(row)}? Then: op resolve {row['operation_id']} --happened or "
            "--did-not-happen",
        )


def _call(row: Any) -> str:
    return f"{row['name']}({row['request']})"


def _named(row: Any) -> str:
    key = f"idempotency key {row['idempotency_key']}"
    return f"{key}, or its own request {row['provider_request_id']}" if row["provider_request_id"] else key


def _of_others(facts: Facts) -> Iterator[Unknown]:
    if facts.standing.partial and facts.status not in FINAL_RUN:
        yield Unknown(
            what="which workers there were, and what other runs held or came before it",
            question=f"run why {facts.run['run_id']} says it of the database itself: a bundle has one run",
        )
