"""The cases of the kill matrix: which command dies where, in which place, way and policy; all of them, and a choice."""

from itertools import product
from typing import NamedTuple

from runtime_persist.commands import COMMANDS
from runtime_persist.commands.parts.spec import HotCommand
from runtime_persist.testing.cuts import Cut, cuts
from tests.journal_kills.places import PLACES
from tests.journal_kills.programs import WAYS

SHAPE_OF = {
    "begin_operation": "call",
    "complete_operation": "call",
    "end_attempt": "flaky",
    "start_attempt": "flaky",
    "note_attempt": "block",
    "save_attempt_raw": "hooked",
    "begin_with_ticket": "budgeted",
    "settle_ticket": "budgeted",
    "begin_in_invocation": "invoked",
}
"""The commands of the journal, and the call that sends each (once for every order)."""
BESIDE = {
    "resolve_unknown": "a person's command: killed in tests/faults, where the same command comes again",
    "control_finalize_operation": "a person's command: killed in tests/faults, where the same command comes again",
    "reserve_ticket": "before a further try, which start_attempt begins: killed in tests/faults",
    "raise_budget": "a person's command: killed in tests/faults, where the same command comes again",
}
"""Commands about operations that no call sends."""
POLICIES = ("ask", "retry")
DATABASES = ("sqlite", "postgresql")
SPECS = {spec.name: spec for spec in COMMANDS.values()}


class Case(NamedTuple):
    """One process that dies: ``nth`` says at which time it reaches the cut."""

    database: str
    command: str
    cut: Cut
    place: str
    way: str
    policy: str
    nth: int = 1

    @property
    def shape(self) -> str:
        return SHAPE_OF[self.command]

    @property
    def id(self) -> str:
        return "-".join([self.database, self.cut.name, self.place, self.way, self.policy, str(self.nth)])


def cuts_of(command: str, database: str) -> list[Cut]:
    """Where it is killed here.

    Of a cold command on PostgreSQL only where its own process knows that it is: its statements are others', too, so a
    proxy would not know whose they are (in tests/faults, where a command is alone, each exchange of it is cut).
    """
    found = cuts(SPECS[command], database)
    return [cut for cut in found if isinstance(SPECS[command], HotCommand) or cut.how == "hook"]


def _places_of(command: str) -> tuple[str, ...]:
    return ("tool",) if SHAPE_OF[command] == "hooked" else PLACES


WHOLE = [
    Case(database, command, cut, place, way, policy, nth)
    for database, command in product(DATABASES, SHAPE_OF)
    for cut in cuts_of(command, database)
    for place, way, policy in product(_places_of(command), WAYS, POLICIES)
    for nth in ((1, 2) if place == "send" else (1,))
]
"""The whole product."""


def pairs_of(case: Case) -> set[tuple[str, ...]]:
    """What a case shows together: every cut, and each two of the other things with the command and one another."""
    around = (case.database, case.command, case.place, case.way, case.policy)
    two = {(one, other) for at, one in enumerate(around) for other in around[at + 1 :]}
    return {(case.database, case.cut.name), *two, (case.place, str(case.nth))}


def chosen() -> list[Case]:
    """A choice with every cut on each database, and every pair of the whole product."""
    left = set().union(*(pairs_of(case) for case in WHOLE))
    by_cut: dict[tuple[str, str], list[Case]] = {}
    for case in WHOLE:
        by_cut.setdefault((case.database, case.cut.name), []).append(case)
    found: list[Case] = []
    for at, cases in enumerate(by_cut.values()):
        turned = cases[at * 7 % len(cases) :] + cases[: at * 7 % len(cases)]  # of equals not always the first
        best = max(turned, key=lambda case: len(pairs_of(case) & left))
        found.append(best)
        left -= pairs_of(best)
    while left:
        best = max(WHOLE, key=lambda case: len(pairs_of(case) & left))
        found.append(best)
        left -= pairs_of(best)
    return found


CHOSEN = chosen()
