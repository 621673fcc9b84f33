"""The recovery matrix: where the process died × who comes back, and when → what happens. A missing row fails."""

import signal
from itertools import product

import pytest

from runtime_persist.commands import COMMANDS
from runtime_persist.engine import ownership, run
from runtime_persist.errors import NothingToClaim, ThreadOwned
from runtime_persist.testing.cuts import cuts
from tests.faults import acts
from tests.recovery.lives import STEPS

SPECS = {spec.name: spec for spec in COMMANDS.values()}


def killed_behind(step, dialect_name):
    """The cut at which the life ends so that ``step`` was its last committed command."""
    following = STEPS.index(step) + 1
    if following == len(STEPS):
        return f"{step}:after:commit"
    return cuts(SPECS[STEPS[following]], dialect_name)[0].name


# --- who comes back; each tells in words what happened ----------------------------------------------------------------


def let_expire(stage):
    for row in acts.rows(stage)["runs"]:
        if row["phase"] != "released":
            stage.expire(row["run_id"])


def causes_of(stage):
    attempts = sorted(acts.check(stage)["attempts"], key=lambda attempt: attempt["attempt_no"])
    return [attempt["cause"] for attempt in attempts]


def worker(stage):
    (row,) = acts.rows(stage)["runs"]
    try:
        owned = acts.claim(stage, row["run_id"])
    except NothingToClaim:
        return "nothing to claim"
    acts.activate(owned)
    causes = causes_of(stage)
    acts.finish(stage, owned)
    return f"claims under epoch {owned.lease.epoch}: {', '.join(causes)}"


def owned_call_goes_on(stage):
    try:
        owned = run(ownership.proceed(stage.engine, acts.SERDE, stage.thread_id, acts.GRAPH))
    except (NothingToClaim, ThreadOwned) as error:
        return error.code.lower().replace("_", " ")
    stage.engine.heartbeats.remove(owned)
    causes = causes_of(stage)
    acts.finish(stage, owned)
    return f"goes on under epoch {owned.lease.epoch}: {', '.join(causes)}"


def owned_call_starts(stage):
    (before,) = acts.rows(stage)["runs"]
    try:
        owned = acts.own(stage)
    except ThreadOwned as error:
        return error.code.lower().replace("_", " ")
    statuses = {row["run_id"]: row["status"] for row in acts.check(stage)["runs"]}
    acts.finish(stage, owned)
    return f"starts, the old run is {statuses[before['run_id']]}"


def person_writes(stage):
    head = [row["checkpoint_id"] for row in acts.rows(stage)["heads"]]
    try:
        acts.commit(stage, acts.put(stage, head[0] if head else None))
    except ThreadOwned as error:
        return error.code.lower().replace("_", " ")
    return "writes"


NOTHING, OWNED = "nothing to claim", "thread owned"
CLAIMED = STEPS[1:3]
STARTED = STEPS[3:4]
RUNNING = STEPS[4:8]
COMERS = {
    "a worker at once": (worker, False),
    "a worker later": (worker, True),
    "an owned call goes on at once": (owned_call_goes_on, False),
    "an owned call goes on later": (owned_call_goes_on, True),
    "an owned call starts at once": (owned_call_starts, False),
    "an owned call starts later": (owned_call_starts, True),
    "a person writes at once": (person_writes, False),
    "a person writes later": (person_writes, True),
}


def rows_of(steps, *outcomes):
    return {(step, comer): outcome for step in steps for comer, outcome in zip(COMERS, outcomes, strict=True)}


FRESH = "under epoch 1: initial"
EXPECTED = {
    **rows_of(STEPS[:1], f"claims {FRESH}", f"claims {FRESH}", f"goes on {FRESH}", f"goes on {FRESH}",
              OWNED, OWNED, "writes", "writes"),
    # Before the start fence nothing ran: a worker claims the same attempt again.
    **rows_of(CLAIMED, NOTHING, "claims under epoch 2: initial", OWNED, "goes on under epoch 2: initial, resume",
              OWNED, OWNED, OWNED, "writes"),
    # Behind it time alone never queues the attempt again: it is lost, and a takeover's attempt goes on.
    **rows_of(STARTED, NOTHING, "claims under epoch 2: initial, takeover", OWNED,
              "goes on under epoch 2: initial, takeover", OWNED, OWNED, OWNED, "writes"),
    **rows_of(RUNNING, NOTHING, "claims under epoch 2: initial, takeover", OWNED,
              "goes on under epoch 2: initial, takeover", OWNED, "starts, the old run is cancelled", OWNED, "writes"),
    **rows_of(STEPS[8:], NOTHING, NOTHING, NOTHING, NOTHING, "starts, the old run is succeeded",
              "starts, the old run is succeeded", "writes", "writes"),
}  # fmt: skip


def test_the_matrix_is_complete():
    assert set(EXPECTED) == set(product(STEPS, COMERS))


@pytest.fixture(params=["sqlite", "postgresql"])
def lab(request):
    return request.getfixturevalue("sqlite_lab" if request.param == "sqlite" else "postgres_lab")


@pytest.mark.parametrize("comer", COMERS)
@pytest.mark.parametrize("step", STEPS)
def test_who_comes_back(lab, fork_server, step, comer):
    comes_back, later = COMERS[comer]
    with lab.stage("empty", lambda _stage: None) as stage:
        args = {"url": stage.url, "thread_id": stage.thread_id}
        cut = killed_behind(step, lab.dialect_name)
        death = fork_server.fork("tests.recovery.lives:live", args, kill_at=cut).wait()
        assert death.status == -signal.SIGKILL, death.error
        assert death.reached[-1] == cut
        lab.settle()
        acts.check(stage)
        if later:
            let_expire(stage)
        assert comes_back(stage) == EXPECTED[step, comer]
        acts.check(stage)
