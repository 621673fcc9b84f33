"""SIGKILL at every cut of every command on SQLite, in a real process; a second process finishes."""

import pytest

from tests.faults.killing import kill, reachable, trace
from tests.faults.matrix import SCENARIOS

CASES = [
    pytest.param(scenario, cut, id=f"{scenario.name}-{cut.name}")
    for scenario in SCENARIOS
    for cut in reachable(scenario, "sqlite")
]


@pytest.mark.parametrize(("scenario", "cut"), CASES)
def test_a_second_process_finishes(sqlite_lab, fork_server, scenario, cut):
    times = trace(sqlite_lab, fork_server, scenario)[cut.name]
    assert times, "the cut is never reached"
    for nth in range(1, times + 1):
        kill(sqlite_lab, fork_server, scenario, cut, nth)
