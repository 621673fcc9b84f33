"""SIGKILL at every cut of every command of the journal, wherever a call can stand: nothing is sold twice unnoticed.

An outside server that does not recognise keys counts what it sells. Other processes go on, with a person who answers
by what is outside; then every order was sold once, or twice where ``retry`` had been chosen and the journal says so,
and the run ended as if nobody had disturbed it.
"""

from itertools import product

import pytest

from runtime_persist.commands.parts.beginning import Begins
from tests.journal_kills import cases, killing
from tests.journal_kills.cases import CHOSEN, DATABASES, SHAPE_OF, WHOLE, Case
from tests.journal_kills.places import PLACES, SHAPES, ends_with
from tests.journal_kills.programs import WAYS

BEFORE = {
    "begin_operation": 0,
    "complete_operation": 1,
    "end_attempt": 0,
    "start_attempt": 0,
    "save_attempt_raw": 1,
    "begin_with_ticket": 0,
    "begin_in_invocation": 0,
    "settle_ticket": 1,
}
"""How often an order is sold when the process dies in a command of it."""


def expected(case: Case, committed: bool) -> tuple[bool, int]:
    """Whether its outcome is unknown to whoever goes on, and how often it is sold in the end."""
    begins = {"begin_operation", "begin_with_ticket", "begin_in_invocation", "start_attempt"}
    unknown = committed if case.command in begins else not committed and case.command != "settle_ticket"
    again = unknown and case.policy == "retry" and BEFORE[case.command] == 1
    return unknown and case.policy == "ask", 2 if again else 1


def check(database_of, shop_server, outside, case):
    outside.begin(busy=case.shape == "flaky")
    database = database_of(case.database)
    killing.die(database, shop_server, outside, case)
    asked = killing.recover(database, shop_server, outside, case)
    sold = killing.settled(database, outside, case)
    committed = killing.committed(case)
    if case.policy == "ask":
        assert set(sold.values()) == {1}
    if case.place == "send" or committed is None or case.command == "note_attempt":
        return  # how far the other branch, or the call beside its note, had come is chance
    assert (bool(asked), sold["a"]) == expected(case, committed)


@pytest.mark.parametrize("case", CHOSEN, ids=lambda case: case.id)
def test_killed_at_any_cut_it_is_sold_once_or_told_so(database_of, shop_server, outside, case):
    check(database_of, shop_server, outside, case)


@pytest.mark.exhaustive
@pytest.mark.parametrize("case", [case for case in WHOLE if case not in CHOSEN], ids=lambda case: case.id)
def test_killed_at_any_cut_in_any_place_it_is_sold_once_or_told_so(database_of, shop_server, outside, case):
    check(database_of, shop_server, outside, case)


UNDISTURBED = [
    pytest.param(database, place, shape, WAYS[at % len(WAYS)], id=f"{database}-{place}-{shape}-{WAYS[at % len(WAYS)]}")
    for at, (shape, database, place) in enumerate(product(SHAPES, DATABASES, PLACES))
    if shape != "hooked" or place == "tool"
]


@pytest.mark.parametrize(("database", "place", "shape", "way"), UNDISTURBED)
def test_undisturbed_it_sends_each_command_once_for_an_order(
    database_of, shop_server, outside, database, place, shape, way
):
    """Each cut is reached, so each case of the matrix is one."""
    outside.begin(busy=shape == "flaky")
    made = database_of(database)
    args = {"place": place, "shape": shape, "port": outside.port, "policy": "ask", "way": way, "url": made.victim_url}
    death = shop_server.fork(f"{killing.PROGRAMS}:lives", args).wait()
    assert death.status == 0, death.error
    assert ("ended", ("output", ends_with(place, shape))) in death.told
    for command, sent_by in SHAPE_OF.items():
        if sent_by == shape:
            reached = {cut.split(":")[0] for cut in death.reached}
            assert command in reached


def test_every_command_about_operations_is_killed_or_said_to_be_elsewhere():
    about = {
        name
        for name, spec in cases.SPECS.items()
        if any(word in name for word in ("operation", "attempt", "ticket"))
        or issubclass(spec.dto, Begins)
        or name in cases.BESIDE
    }
    of_runs = {"fail_attempt", "report_attempt_event", "yield_attempt"}
    assert about - of_runs - set(SHAPE_OF) - set(cases.BESIDE) == set()


def test_the_choice_has_every_cut_and_every_pair():
    whole = set().union(*(cases.pairs_of(case) for case in WHOLE))
    assert set().union(*(cases.pairs_of(case) for case in CHOSEN)) == whole
    assert len(CHOSEN) < len(WHOLE) / 10
