"""The transition tables: whole, the same as what the databases check, and the same as what the page draws."""

import re
import sqlite3
from pathlib import Path

import asyncpg
import pytest

from runtime_persist.errors import IllegalTransition
from runtime_persist.model.states import (
    ATTEMPT_TRANSITIONS,
    FINAL_ATTEMPT,
    FINAL_RUN,
    RUN_TRANSITIONS,
    AttemptStatus,
    Control,
    LeasePhase,
    RunStatus,
    check_attempt,
    check_run,
)

PAGE = Path(__file__).parents[2] / "docs" / "states.md"
MACHINES = {
    "Run": (RunStatus, RUN_TRANSITIONS, FINAL_RUN, RunStatus.CREATED, check_run),
    "Attempt": (AttemptStatus, ATTEMPT_TRANSITIONS, FINAL_ATTEMPT, AttemptStatus.QUEUED, check_attempt),
}
each_machine = pytest.mark.parametrize("name", MACHINES)
COLUMNS = {
    ("rp_runs", "status"): RunStatus,
    ("rp_runs", "control"): Control,
    ("rp_runs", "phase"): LeasePhase,
    ("rp_attempts", "status"): AttemptStatus,
}


@each_machine
def test_every_state_is_in_the_table_and_a_final_one_leads_nowhere(name):
    states, table, final, *_ = MACHINES[name]
    assert set(table) == set(states)
    assert {state for state, following in table.items() if not following} == final


@each_machine
def test_every_state_can_be_reached_and_from_every_open_one_an_end(name):
    _, table, final, first, _ = MACHINES[name]

    def reached(state):
        found, at = set(), {state}
        while at:
            found |= at
            at = {new for old in at for new in table[old]} - found
        return found

    assert reached(first) == set(table)
    assert all(reached(state) & final for state in table)


@each_machine
def test_a_transition_is_accepted_when_the_table_has_it_and_refused_when_not(name):
    states, table, *_, check = MACHINES[name]
    for old in states:
        for new in states:
            if new in table[old]:
                check(old, new)
            else:
                with pytest.raises(IllegalTransition, match=f"{old} cannot become {new}"):
                    check(old, new)


@each_machine
def test_the_page_draws_exactly_the_table(name):
    _, table, final, *_ = MACHINES[name]
    section = PAGE.read_text(encoding="utf-8").partition(f"## {name}\n")[2].partition("\n## ")[0]
    drawn = re.findall(r"^    (\w+) --> (\S+)$", section, re.MULTILINE)
    expected = [(old, new) for old, following in table.items() for new in following] + [(one, "[*]") for one in final]
    assert sorted(drawn) == sorted((str(old), str(new)) for old, new in expected)


@pytest.mark.parametrize(("table", "column"), COLUMNS)
def test_the_database_takes_exactly_the_states_of_the_table(world, table, column):
    world.owned()
    for state in COLUMNS[table, column]:
        world.raw.rows(f"UPDATE {table} SET {column} = ?", state.value)
    with pytest.raises((sqlite3.IntegrityError, asyncpg.CheckViolationError)):
        world.raw.rows(f"UPDATE {table} SET {column} = ?", "asleep")
