"""The list of cuts is complete: what the commands reach is what is listed, and all of it is killed somewhere."""

import pytest

from runtime_persist.commands import COMMANDS
from runtime_persist.testing.cuts import cuts
from tests.faults.document import PATH, document
from tests.faults.killing import trace
from tests.faults.matrix import NOT_KILLED, SCENARIOS

NAMES = {spec.name: spec for spec in COMMANDS.values()}


def by_name(scenario):
    return scenario.name


def hooks(spec, dialect_name):
    return {cut.name for cut in cuts(spec, dialect_name) if cut.how == "hook"}


def never_reached(scenario, dialect_name):
    return {
        cut.name for cut in cuts(scenario.spec, dialect_name) if cut.how == "hook" and cut.statement in scenario.never
    }


@pytest.mark.parametrize("scenario", SCENARIOS, ids=by_name)
def test_a_scenario_reaches_exactly_what_it_says_on_sqlite(sqlite_lab, fork_server, scenario):
    reached = set(trace(sqlite_lab, fork_server, scenario))
    assert reached == hooks(scenario.spec, "sqlite") - never_reached(scenario, "sqlite")


@pytest.mark.parametrize("scenario", SCENARIOS, ids=by_name)
def test_a_scenario_reaches_exactly_what_it_says_on_postgresql(postgres_lab, fork_server, scenario):
    reached = set(trace(postgres_lab, fork_server, scenario))
    assert reached == hooks(scenario.spec, "postgresql") - never_reached(scenario, "postgresql")


@pytest.mark.parametrize("name", sorted(NAMES))
def test_every_command_is_killed_or_says_why_not(name):
    killed = name in {scenario.spec.name for scenario in SCENARIOS}
    assert killed is not (name in NOT_KILLED), f"{name} needs a scenario in tests/faults/matrix.py"


@pytest.mark.parametrize("scenario", SCENARIOS, ids=by_name)
def test_what_a_scenario_does_not_reach_exists_and_has_a_reason(scenario):
    statements = {cut.statement for cut in cuts(scenario.spec, "sqlite")}
    assert set(scenario.never) <= statements
    assert all(scenario.never.values())


def test_scenarios_have_names_of_their_own():
    names = [scenario.name for scenario in SCENARIOS]
    assert len(set(names)) == len(names)


def test_the_page_is_fresh():
    assert PATH.read_text(encoding="utf-8") == document(), "run: python -m tests.faults.document"
