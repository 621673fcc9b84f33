"""The rows of the kill matrix of claims: what is claimed, activated, started, given back, lost and reported."""

from dataclasses import replace
from typing import Any

from runtime_persist.commands.activate_lease import ActivateLease
from runtime_persist.commands.mark_lost import MarkLost
from runtime_persist.commands.release_claim import ReleaseClaim
from runtime_persist.commands.report_attempt_event import ReportAttemptEvent
from runtime_persist.commands.request_start import RequestStart
from runtime_persist.engine import OwnedRun, ownership, run, settling
from runtime_persist.model.ids import new_id
from runtime_persist.model.retry import RetryPolicy
from runtime_persist.queries.claiming import HEADS
from tests.faults import acts, scenarios
from tests.faults.kit import Stage
from tests.faults.scenarios import Prepared, Scenario

NO_ATTEMPT = "a run that was never dispatched has no attempt"
FIRST_ATTEMPT = "this situation makes the attempt, it does not change one"
NO_TRIES = "a run that is claimed for the first time has no tries"
NOT_PAST_FENCE = "only a run past its start fence is taken over"
PLACES_HELD = dict.fromkeys(
    ("lock_graph_limit", "count_places", "lock_scope", "read_scope_holder"),
    "a run that is active already has its places",
)


def a_claim(stage: Stage, run_id: str, epoch: int, *, takeover: bool) -> Prepared:
    facts = {"run_id": run_id, "epoch": epoch, "takeover": takeover}
    return Prepared(acts.claim_command(stage, run_id), facts)


def of_a_queued_run(stage: Stage) -> Prepared:
    return a_claim(stage, acts.queue(stage), 0, takeover=False)


def of_a_claimed_run(stage: Stage) -> Prepared:
    """Its worker died before the start fence."""
    run_id = acts.queue(stage)
    acts.claim(stage, run_id)
    stage.expire(run_id)
    return a_claim(stage, run_id, 1, takeover=False)


def left(stage: Stage) -> str:
    """A run whose worker died in the middle of an operation, behind a checkpoint."""
    owned = acts.own(stage)
    acts.commit(stage, acts.checkpoint(stage, owned, None))
    acts.commit(stage, acts.begin(stage, owned))
    stage.expire(owned.lease.run_id)
    return owned.lease.run_id


def of_a_started_run(stage: Stage) -> Prepared:
    return a_claim(stage, left(stage), 1, takeover=True)


def taken_and_left(stage: Stage) -> str:
    """A run whose takeover died between its activation and its start fence."""
    run_id = left(stage)
    owned = acts.claim(stage, run_id)
    fields = {"attempt_id": new_id()}
    acts.commit(stage, ActivateLease(**fields, **acts.leased(stage, owned)))
    stage.expire(run_id)
    return run_id


def of_an_activated_run(stage: Stage) -> Prepared:
    return a_claim(stage, taken_and_left(stage), 2, takeover=True)


def next_queued(stage: Stage) -> Prepared:
    """Its claim starts it too: it becomes running, or stays queued."""
    run_id = acts.queue(stage)
    return Prepared(acts.next_command(stage, "queued", starts=True), {"run_id": run_id, "epoch": 0, "takeover": False})


def next_due(stage: Stage) -> Prepared:
    """Its first attempt failed; the claimer waits for whoever serves the graph."""
    asked = replace(acts.request(stage), retry_policy=RetryPolicy(backoff=0).encoded())
    owned = run(ownership.start(stage.engine, acts.SERDE, asked, stage.thread_id))
    stage.engine.heartbeats.remove(owned)
    run(settling.fail_attempt(stage.engine, owned, ValueError("no luck")))
    facts = {"run_id": owned.lease.run_id, "epoch": 1, "takeover": False}
    return Prepared(acts.next_command(stage, "due", waits=True), facts)


def next_left(stage: Stage) -> Prepared:
    run_id = left(stage)
    command = acts.next_command(stage, "left", others=("another:",))
    return Prepared(command, {"run_id": run_id, "epoch": 1, "takeover": True})


def a_step(stage: Stage, owned: OwnedRun, command: type[Any], **fields: Any) -> Prepared:
    facts = {"run_id": owned.lease.run_id}
    return Prepared(command(**fields, **acts.leased(stage, owned)), facts)


def activation(stage: Stage, run_id: str) -> Prepared:
    owned = acts.claim(stage, run_id)
    return a_step(stage, owned, ActivateLease, attempt_id=new_id())


def activated(stage: Stage) -> OwnedRun:
    owned = acts.claim(stage, acts.queue(stage))
    fields = {"attempt_id": new_id()}
    acts.commit(stage, ActivateLease(**fields, **acts.leased(stage, owned)))
    return owned


def a_start(stage: Stage) -> Prepared:
    owned = activated(stage)
    return a_step(stage, owned, RequestStart, attempt_id=owned.lease.attempt_id)


def a_release(stage: Stage) -> Prepared:
    return a_step(stage, acts.claim(stage, acts.queue(stage)), ReleaseClaim)


def a_loss(stage: Stage) -> Prepared:
    run_id = left(stage)
    return Prepared(MarkLost(run_id=run_id, space=stage.engine.space, command_id=new_id()), {"run_id": run_id})


def a_report(stage: Stage) -> Prepared:
    owned = activated(stage)
    attempt = {"attempt_id": owned.lease.attempt_id}
    acts.commit(stage, RequestStart(**attempt, **acts.leased(stage, owned)))
    return a_step(stage, owned, ReportAttemptEvent, **attempt)


_TURN = ("lock_graph", "lock_free_graph", "take_turn")


def claims(name: str, prepare: Any, never: dict[str, str]) -> Scenario:
    return Scenario(f"claim_run:{name}", prepare, scenarios.claimed_again, scenarios.receipts, never)


def claims_next(kind: str, prepare: Any, never: dict[str, str]) -> Scenario:
    others = {f"pick_{other}_run": "another kind of run is asked for" for other in HEADS if other != kind}
    free = {"lock_graph": "the graph is free, or somebody else's turn"} if kind != "due" else {}
    waits = {"lock_free_graph": "it waits for whoever serves the graph"} if kind == "due" else {}
    turn = {"read_heads": "it takes its turn"} if kind != "left" else dict.fromkeys(_TURN, "no other graph waits")
    said = others | free | waits | turn | never
    return Scenario(f"claim_next:{kind}", prepare, scenarios.claimed_again, scenarios.receipts, said)


def step(name: str, prepare: Any, never: dict[str, str] | None = None) -> Scenario:
    return Scenario(name, prepare, scenarios.step_again, scenarios.receipts, never or {})


CLAIM = (
    claims(
        "queued",
        of_a_queued_run,
        {
            "read_attempt": NO_ATTEMPT,
            "save_attempt": FIRST_ATTEMPT,
            "read_progress": NOT_PAST_FENCE,
            "mark_tries_unknown": NO_TRIES,
        },
    ),
    claims(
        "claimed",
        of_a_claimed_run,
        PLACES_HELD
        | {"insert_attempt": "the attempt that was never started is claimed again", "read_progress": NOT_PAST_FENCE},
    ),
    claims(
        "started",
        of_a_started_run,
        PLACES_HELD | {"insert_attempt": "the takeover's attempt is made when the lease is activated"},
    ),
    claims(
        "activated",
        of_an_activated_run,
        PLACES_HELD | {"insert_attempt": "the takeover's attempt, which was never started, is claimed again"},
    ),
    claims_next(
        "queued",
        next_queued,
        {
            "read_attempt": NO_ATTEMPT,
            "save_attempt": FIRST_ATTEMPT,
            "read_progress": NOT_PAST_FENCE,
            "mark_tries_unknown": NO_TRIES,
        },
    ),
    claims_next("due", next_due, {"save_attempt": FIRST_ATTEMPT, "read_progress": NOT_PAST_FENCE}),
    claims_next(
        "left",
        next_left,
        {"insert_attempt": "the takeover's attempt is made when the lease is activated"}
        | {name: PLACES_HELD[name] for name in ("lock_scope", "read_scope_holder")},
    ),
    step(
        "activate_lease:queued",
        lambda stage: activation(stage, acts.queue(stage)),
        {"insert_attempt": "the claim of a queued run has made the attempt"},
    ),
    step("activate_lease:started", lambda stage: activation(stage, left(stage))),
    step("request_start", a_start),
    step("report_attempt_event", a_report),
    step("release_claim", a_release),
    step("mark_lost", a_loss),
)
