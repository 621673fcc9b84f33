"""The situations a run can be in, one a row: how its rows show it, what proves it, what is awaited, what to do.

The first situation that holds is the run's. Texts are formatted with the words of :mod:`runtime_persist.inspector.why`;
``runtime-persist`` is left out of the commands.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from runtime_persist.model.evidence import Observed
from runtime_persist.model.lease import BLOCKED, MANUAL_GRAPH
from runtime_persist.model.states import Control, LeasePhase, RunStatus

if TYPE_CHECKING:
    from collections.abc import Callable

    from runtime_persist.inspector.workers import WorkerView
    from runtime_persist.queries.why import Standing

_S = RunStatus
_CANCEL = "run cancel {run_id}"
_INSPECT = "inspect {run_id}"
_RETRY = "run retry {run_id}"
_WORKER = "worker MODULE:ATTRIBUTE"
_OF_DOMAINS = (
    ("domain list {run_id}", "see the domains, and how they are found"),
    ("domain revoke {run_id} {domain_id} --by NAME", "say that it can no longer write, when you know it"),
)


class Facts:
    """A run's standing, with what its rows mean at this moment."""

    def __init__(self, standing: Standing, workers: list[WorkerView], question: Any) -> None:
        """Take in what was read; ``question`` is the decoded one."""
        run = standing.run
        self.standing = standing
        self.workers = workers
        self.question = question
        self.run = run
        self.status = RunStatus(run["status"])
        self.now_us: int = run["now_us"]
        self.held = run["phase"] != LeasePhase.RELEASED
        self.live = self.held and run["expires_us"] > self.now_us
        self.expired = self.held and not self.live
        self.stopping = run["control"] == Control.STOPPING
        self.manual = run["graph"] == MANUAL_GRAPH
        attempt = standing.attempt
        self.fenced = attempt is not None and attempt["start_requested_us"] is not None and attempt["ended_us"] is None
        limit = None if standing.graph is None else standing.graph["max_concurrency"]
        self.full = limit is not None and standing.active >= limit
        self.due = self.status is _S.RETRY_WAIT and (run["next_attempt_us"] or 0) <= self.now_us
        # It waits for a worker and nothing else of its own.
        self.waits_for_worker = self.status is _S.QUEUED or self.due

    def question_is(self, kind: str) -> bool:
        """Return whether the run waits for a person, with a question of this kind."""
        known = isinstance(self.question, dict)
        return self.status is _S.WAITING_APPROVAL and known and self.question.get("kind") == kind

    def some_worker(self, *, graph: bool = False, version: bool = False, slot: bool = False) -> bool:
        """Return whether a worker that is not gone has the graph, its version, a slot."""
        name, wanted = self.run["graph"], self.run["graph_version"]
        for worker in self.workers:
            versions = worker.graphs.get(name, [])
            fits = (
                worker.state != "gone"
                and (not graph or bool(versions))
                and (not version or wanted is None or bool({wanted, "*"} & set(versions)))
                and (not slot or (worker.state == "alive" and worker.occupied < worker.slots))
            )
            if fits:
                return True
        return False


@dataclass(frozen=True, slots=True)
class Situation:
    """One row.

    Attributes:
        name: stable, for programs.
        holds: whether the run is in it.
        because: what is the matter.
        proof: the rows that show it.
        awaits: what has to happen before it goes on ("": nothing).
        do: commands that help, each with its purpose.

    """

    name: str
    holds: Callable[[Facts], bool]
    because: str
    proof: str
    awaits: str = ""
    do: tuple[tuple[str, str], ...] = ()


_FINAL: Final = (
    Situation(
        "succeeded",
        lambda f: f.status is _S.SUCCEEDED,
        "its graph returned {finished_ago}, at attempt {attempt_no}",
        "run.succeeded was committed with its result, under the lease of epoch {epoch}",
        do=(("run result {run_id}", "print the result"),),
    ),
    Situation(
        "crash_loop",
        lambda f: f.status is _S.FAILED and f.run["error_code"] == "crash_loop",
        "its workers crashed {takeovers} times in a row without a new checkpoint or operation, so it was given up",
        "{takeovers} takeovers were counted, more than its policy allows",
        do=((_INSPECT, "see where it stood each time"), (_RETRY, "start a new run of it")),
    ),
    Situation(
        "retries_used_up",
        lambda f: f.status is _S.FAILED and f.run["failures"] > 1,
        "{failures} attempts failed, the last one with {error}",
        "each failure was committed by its holder; the policy allows no more, or this error is always the same",
        do=((_INSPECT, "see every attempt"), (_RETRY, "start a new run of it")),
    ),
    Situation(
        "failed",
        lambda f: f.status is _S.FAILED,
        "its graph raised {error}",
        "the failure was committed by its holder under the lease of epoch {epoch}; no retry was left",
        do=((_INSPECT, "see what it did"), (_RETRY, "start a new run of it")),
    ),
    Situation(
        "timed_out",
        lambda f: f.status is _S.TIMED_OUT,
        "its deadline passed {deadline_ago}, before it had ended",
        "the database's clock, under the lock of its row{observed}",
        do=(("run retry {run_id}", "start a new run of it"),),
    ),
    Situation(
        "cancelled",
        lambda f: f.status is _S.CANCELLED,
        "it was stopped ({stop_reason}) and ended {finished_ago}",
        "whoever executed it committed that it had stopped, or nothing of it was running{observed}",
        do=((_RETRY, "start a new run of it"),),
    ),
)
_STOPPING: Final = (
    Situation(
        "stopping_blocked",
        lambda f: f.stopping and f.run["revocation"] == BLOCKED,
        "it is to stop ({stop_reason}), but nothing proves that what it opened outside cannot be written to any more",
        "{domains} not revoked; the last takeover could not prove it either",
        "proof that {domains} can no longer write",
        _OF_DOMAINS,
    ),
    Situation(
        "stopping_live",
        lambda f: f.stopping and f.live,
        "it was asked to stop ({stop_reason}); worker {worker} still holds it",
        "its lease (epoch {epoch}) runs out {lease_in}; it takes no new work, results of work in flight are accepted",
        "its holder to say that it has stopped: it hears of it when it renews the lease",
        ((_INSPECT, "see what is in flight"),),
    ),
    Situation(
        "stopping_left",
        lambda f: f.stopping,
        "it is to stop ({stop_reason}), and nobody holds it any more",
        "its lease (epoch {epoch}) ran out {lease_in}",
        "any worker: ending it needs neither its graph nor a slot",
        ((_WORKER, "start a worker"), (_CANCEL, "end it from here")),
    ),
)
_LEFT: Final = (
    Situation(
        "takeover_blocked",
        lambda f: f.run["revocation"] == BLOCKED,
        "it was left, and nothing proves that what it opened outside cannot be written to any more: nothing starts",
        "{domains} not revoked; worker {worker} (epoch {epoch}) tried last",
        "proof that {domains} can no longer write",
        (*_OF_DOMAINS, (_CANCEL, "end it when that is proved")),
    ),
    Situation(
        "recovering",
        lambda f: f.status is _S.LOST and f.live,
        "worker {worker} is taking it over",
        "the lease (epoch {epoch}) is {phase} and runs out {lease_in}: every older epoch is refused already",
        "the revocation of what older attempts opened, then a new attempt from the last checkpoint",
    ),
    Situation(
        "manual_left",
        lambda f: f.manual and (f.status is _S.LOST or f.expired),
        "the process that held this lease by hand is gone",
        "the lease (epoch {epoch}) ran out {lease_in}; nothing can be resumed: it has no graph",
        "somebody to end it, or to take the thread anew",
        ((_CANCEL, "end it"),),
    ),
    Situation(
        "lost",
        lambda f: f.status is _S.LOST,
        "it may have run on, and nothing proves what became of it: worker {last_worker} stopped renewing its lease",
        "attempt {attempt_no} passed its start fence {fence_ago}, and its lease (epoch {epoch}) ran out",
        "a worker that takes it over: it resumes at the last checkpoint, and every older epoch is refused",
        ((_WORKER, "start a worker that has {graph}"), (_INSPECT, "see what is unknown"), (_CANCEL, "end it")),
    ),
    Situation(
        "not_started",
        lambda f: f.status is _S.DISPATCHING and f.expired and not f.fenced,
        "worker {worker} claimed it and let the claim run out; it was certainly not started",
        "no start fence was written for attempt {attempt_no}, and its lease (epoch {epoch}) ran out {lease_in}",
        "a worker that claims it again: the same attempt, no retry is counted",
        ((_WORKER, "start a worker that has {graph}"), (_CANCEL, "end it")),
    ),
    Situation(
        "left",
        lambda f: f.expired,
        "it may still run, and nothing proves it: worker {worker} does not renew its lease any more",
        "attempt {attempt_no} passed its start fence {fence_ago}, and its lease (epoch {epoch}) ran out {lease_in}",
        "a worker that takes it over: it resumes at the last checkpoint, and every older epoch is refused",
        ((_WORKER, "start a worker that has {graph}"), (_INSPECT, "see what is unknown"), (_CANCEL, "end it")),
    ),
)
_LIVE: Final = (
    Situation(
        "running",
        lambda f: f.status is _S.RUNNING,
        "worker {worker} executes it",
        "attempt {attempt_no} reported that it runs {observed_ago}; its lease (epoch {epoch}) is {phase} and runs out "
        "{lease_in}",
        "its graph",
        (("run result {run_id} --timeout 60", "wait for it"), (_CANCEL, "stop it")),
    ),
    Situation(
        "waits_for_its_runtime",
        lambda f: f.status is _S.DISPATCHING and f.run["observed_state"] == Observed.ACCEPTED,
        "its runtime accepted attempt {attempt_no} {observed_ago}, and nothing shows yet that it runs",
        "the last report says accepted; the lease (epoch {epoch}) is held by worker {worker} and runs out {lease_in}",
        "the first sign of activity",
        ((_CANCEL, "stop it"),),
    ),
    Situation(
        "starting",
        lambda f: f.status is _S.DISPATCHING and f.fenced,
        "worker {worker} is starting it",
        "attempt {attempt_no} passed its start fence {fence_ago} and has not reported yet; its lease (epoch {epoch}) "
        "runs out {lease_in}",
        "the first report of its runtime",
    ),
    Situation(
        "claimed",
        lambda f: f.status is _S.DISPATCHING,
        "worker {worker} claimed it and has not started it yet",
        "no start fence is written for attempt {attempt_no}; the lease (epoch {epoch}) is {phase} and runs out "
        "{lease_in}",
        "its start fence",
    ),
)
_WAITING: Final = (
    Situation(
        "asks_a_person",
        lambda f: f.question_is("interrupt"),
        "it asked a person {updated_ago}: {question}",
        "its attempt ended as yielded at a checkpoint, and its lease is released: it holds no worker",
        "an answer",
        (("run resume {run_id} --value JSON", "answer it"), (_CANCEL, "end it")),
    ),
    Situation(
        "stands_at_a_breakpoint",
        lambda f: f.question_is("breakpoint"),
        "it came to a breakpoint {updated_ago}, before {question}",
        "its attempt ended as yielded at a checkpoint, and its lease is released: it holds no worker",
        "somebody to let it go on",
        (("run resume {run_id}", "let it go on"), (_CANCEL, "end it")),
    ),
    Situation(
        "asks_about_an_operation",
        lambda f: f.question_is("unknown_operation"),
        "it asked a person {updated_ago}: nothing proves what became of {question}",
        "the call was started, its outcome was never committed, and its on_unknown is ask",
        "somebody who says what happened",
        (
            ("op show {operation_id}", "see the call"),
            ("op resolve {operation_id} --happened --result JSON", "it happened"),
            ("op resolve {operation_id} --did-not-happen", "it did not: it is called again with the same key"),
        ),
    ),
    Situation(
        "has_spent_its_budget",
        lambda f: f.question_is("budget"),
        "it has spent its budget {updated_ago}: {question}",
        "the call that came next was not begun: its ticket was refused, and the attempt ended as yielded",
        "somebody who raises the limit",
        (("run raise-budget {run_id} --loops N", "raise it: it goes on from there"), (_CANCEL, "end it")),
    ),
    Situation(
        "waits_for_a_person",
        lambda f: f.status is _S.WAITING_APPROVAL,
        "it asked a person {updated_ago}",
        "its attempt ended as yielded at a checkpoint, and its lease is released: it holds no worker",
        "an answer",
        ((_INSPECT, "see what it asks"), (_CANCEL, "end it")),
    ),
    Situation(
        "waits_for_its_retry",
        lambda f: f.status is _S.RETRY_WAIT and not f.due,
        "attempt {attempt_no} failed; the next one is due {due_in}",
        "{failures} failures were committed, and its policy allows another attempt",
        "the time, by the database's clock",
        (("run now {run_id}", "do not wait"), (_CANCEL, "end it")),
    ),
)
_QUEUED: Final = (
    Situation(
        "waited_in_a_bundle",
        lambda f: f.waits_for_worker and f.standing.partial,
        "it waited for a worker, with priority {priority}, since {queued_ago}",
        "its status is {status}, and no lease is held; a bundle has neither workers nor other runs",
        "a worker that has {graph}, and its turn",
        (("run why {run_id}", "ask the database it came from"),),
    ),
    Situation(
        "behind_its_thread",
        lambda f: f.waits_for_worker and bool(f.standing.older),
        "older runs of its thread are open: {older_count}, the first is {older} ({older_status})",
        "runs of one thread go one behind the other, in the order in which they were started",
        "the end of {older}",
        (("run why {older}", "see why that one is open"), ("run cancel {older}", "end that one")),
    ),
    Situation(
        "scope_taken",
        lambda f: f.waits_for_worker and f.standing.scope_holder is not None,
        "run {holder} has its scope {scope!r}",
        "at most one active run has a scope, and {holder} is {holder_status}",
        "the end of {holder}",
        (("run why {holder}", "see why that one is active"),),
    ),
    Situation(
        "no_worker",
        lambda f: f.waits_for_worker and not f.some_worker(),
        "no worker is alive",
        "no instance has a report of its capacity that still counts",
        "a worker",
        ((_WORKER, "start one that has {graph}"),),
    ),
    Situation(
        "no_worker_has_its_graph",
        lambda f: f.waits_for_worker and not f.some_worker(graph=True),
        "no worker that is alive has graph {graph}",
        "none of their reports names it",
        "a worker that has it",
        ((_WORKER, "start one that has {graph}"), ("worker list", "see what the others have")),
    ),
    Situation(
        "no_worker_has_its_version",
        lambda f: f.waits_for_worker and not f.some_worker(graph=True, version=True),
        "no worker that is alive has version {version} of graph {graph}",
        "a run belongs to the version it was started with; others leave it alone, without counting an attempt",
        "a worker of that version, or one that accepts it",
        ((_WORKER, "start one with that version"), ("worker list", "see what the others have")),
    ),
    Situation(
        "graph_is_full",
        lambda f: f.waits_for_worker and f.full,
        "all {limit} places of graph {graph} are taken",
        "{active} of its runs are active, and it was registered with max_concurrency={limit}",
        "the end of one of them",
        (("run list", "see which are active"),),
    ),
    Situation(
        "no_slot",
        lambda f: f.waits_for_worker and not f.some_worker(graph=True, version=True, slot=True),
        "no worker that could execute it has a free slot",
        "their reports, and the runs that hold their slots",
        "a free slot",
        (("worker list", "see what occupies them"), (_WORKER, "start another one")),
    ),
    Situation(
        "behind_others",
        lambda f: f.waits_for_worker and f.standing.ahead > 0,
        "queued runs of its graph that come before it: {ahead}, the first is {first_ahead}{others}",
        "priority first, then who was queued first; graphs take turns",
        "its turn",
        (("run now {run_id}", "let it come next"), ("run why {first_ahead}", "see why that one waits")),
    ),
    Situation(
        "next",
        lambda f: f.waits_for_worker,
        "it is the next run of its graph{others}",
        "nothing stands before it, and a worker with a free slot has its version",
        "the next look of a worker",
    ),
)
_CREATED: Final = (
    Situation(
        "created",
        lambda f: f.status is _S.CREATED,
        "it was written down and never queued",
        "its status is created",
        "whoever made it",
        ((_CANCEL, "end it"),),
    ),
)

SITUATIONS: Final = (*_FINAL, *_STOPPING, *_LEFT, *_LIVE, *_WAITING, *_QUEUED, *_CREATED)
