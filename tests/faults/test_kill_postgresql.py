"""SIGKILL at every cut of every command on PostgreSQL, in a real process; a second process finishes.

The server lives on: what was sent arrives, what was executed stays, whoever sent it.
"""

import pytest

from tests.faults.killing import kill, reachable, trace
from tests.faults.matrix import SCENARIOS, marks

CASES = [
    pytest.param(scenario, cut, id=f"{scenario.name}-{cut.name}", marks=marks(scenario, cut))
    for scenario in SCENARIOS
    for cut in reachable(scenario, "postgresql")
]


@pytest.mark.parametrize(("scenario", "cut"), CASES)
def test_a_second_process_finishes(postgres_lab, fork_server, scenario, cut):
    reached = trace(postgres_lab, fork_server, scenario)
    times = reached[f"{scenario.spec.name}:before:{cut.statement}"]
    assert times, "the statement is never reached"
    for nth in range(1, times + 1):
        kill(postgres_lab, fork_server, scenario, cut, nth)
