"""The connection is lost around a command while its process lives: the coordinator resolves it by its receipt."""

import pytest

from runtime_persist.commands.begin_operation import begun_by
from runtime_persist.errors import ConnectionLost, OutcomeUnknown
from tests.faults import acts
from tests.faults.killing import committed_at, exchange, finished_by_another, reachable
from tests.faults.matrix import SCENARIOS, marks

WHEN = {"sent": "before_send", "reply_lost": "after_reply"}
CASES = [
    pytest.param(scenario, cut, id=f"{scenario.name}-{cut.name}", marks=marks(scenario, cut))
    for scenario in SCENARIOS
    for cut in reachable(scenario, "postgresql")
    if cut.how in WHEN
]
# One situation of each kind of command; where the loss leaves it open whether the command is committed, and where not.
OPEN = [
    (scenario, cut)
    for scenario in SCENARIOS
    if scenario.name in {"commit_workflow_checkpoint:next", "claim_run:queued"}
    for cut in reachable(scenario, "postgresql")
    if cut.how in WHEN and (cut.statement in {"commit", scenario.spec.name} or cut.name.endswith("after:save_run"))
]


def by_name(value):
    return value.name


@pytest.mark.parametrize(("scenario", "cut"), CASES)
def test_the_coordinator_finds_out_by_itself(postgres_lab, scenario, cut):
    with finished_by_another(postgres_lab, scenario, expected=True) as stage:
        command = stage.prepared.command
        hold = postgres_lab.hold(WHEN[cut.how], exchange(postgres_lab, scenario, cut))
        with postgres_lab.coordinator(stage.engine.coordinator.keys) as coordinator:
            future = coordinator.commit(command)
            hold.wait_reached()
            hold.drop()
            receipt = future.result()
        assert (receipt.command_id, receipt.kind) == (command.command_id, scenario.spec.name)
        found_again = cut.how == "reply_lost" and committed_at(scenario, cut)
        assert receipt.replayed is bool(found_again and scenario.spec.name not in acts.ALWAYS_FRESH)
        stored = acts.commit(stage, command)
        assert scenario.hot or receipt.result == stored.result


@pytest.mark.parametrize(("scenario", "cut"), OPEN, ids=by_name)
def test_what_cannot_be_resolved_is_reported_as_unknown_and_never_guessed(postgres_lab, scenario, cut):
    with finished_by_another(postgres_lab, scenario, expected=None) as stage:
        command = stage.prepared.command
        hold = postgres_lab.hold(WHEN[cut.how], exchange(postgres_lab, scenario, cut))
        with postgres_lab.coordinator(stage.engine.coordinator.keys) as coordinator:
            future = coordinator.commit(command)
            hold.wait_reached()
            postgres_lab.proxy.refuse_new()
            try:
                hold.drop()
                error = future.exception()
            finally:
                postgres_lab.proxy.refuse_new(False)
        if scenario.hot or cut.statement == "commit":
            assert isinstance(error, OutcomeUnknown)
            assert error.details["command_id"] == command.command_id
        else:
            assert type(error) is ConnectionLost, "nothing was committed, and that is known"
        rows = acts.check(stage)
        assert scenario.count(rows, stage.prepared) == (cut.how == "reply_lost" and bool(committed_at(scenario, cut)))


def test_an_operation_begun_by_a_lost_reply_may_be_called_and_only_by_its_beginner(postgres_lab):
    """Its receipt looks like that of an operation somebody began before; the journal must tell them apart."""
    (scenario,) = (scenario for scenario in SCENARIOS if scenario.name == "begin_operation")
    (cut,) = (cut for cut in reachable(scenario, "postgresql") if cut.how == "reply_lost")
    with finished_by_another(postgres_lab, scenario, expected=True) as stage:
        command = stage.prepared.command
        hold = postgres_lab.hold("after_reply", exchange(postgres_lab, scenario, cut))
        with postgres_lab.coordinator(stage.engine.coordinator.keys) as coordinator:
            future = coordinator.commit(command)
            hold.wait_reached()
            hold.drop()
            receipt = future.result()
        assert receipt.replayed
        assert begun_by(command, receipt)
        owned = acts.take_over(stage, command.run_id)
        assert not begun_by(command, acts.commit(stage, command)), "a takeover has given it up"
        again = acts.begin_again(command, owned)
        assert not begun_by(again, acts.commit(stage, again))
