"""One case of the kill matrix: prepare, kill, look, let another process finish, look again."""

import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from runtime_persist.commands.parts.spec import HotCommand
from runtime_persist.coordinator.transaction import bundle_of
from runtime_persist.drivers.postgresql import begin_writing
from runtime_persist.plan import Bundle
from runtime_persist.testing.cuts import Cut, cuts, queries_of
from runtime_persist.testing.proxy import Hold, Statement
from tests.faults import acts
from tests.faults.kit import Death, ForkServer, PostgresLab, SqliteLab, Stage
from tests.faults.scenarios import Scenario

SEND = "tests.faults.victims:send_command"
Lab = SqliteLab | PostgresLab


def reachable(scenario: Scenario, dialect_name: str) -> list[Cut]:
    """The cuts of the scenario's command that it says it reaches."""
    return [cut for cut in cuts(scenario.spec, dialect_name) if cut.statement not in scenario.never]


def committed_at(scenario: Scenario, cut: Cut) -> bool | None:
    """Whether the command is committed when its process dies there; None: either is legal."""
    if cut.how == "waiting":
        return None
    if cut.how == "hook":
        return cut.name.endswith(":after:commit")
    return scenario.hot or cut.statement == "commit"


def exchange(lab: PostgresLab, scenario: Scenario, cut: Cut) -> Callable[[Statement], bool]:
    """What the proxy knows the cut's statement by; with others it may be a part of one."""
    if isinstance(scenario.spec, HotCommand):
        whole = lab.dialect.bundle(bundle_of(scenario.spec)).whole
        assert whole is not None
        return lambda statement: statement.name == whole.server_name
    if cut.statement in {"begin", "commit"}:
        text = begin_writing() if cut.statement == "begin" else "COMMIT"
        return lambda statement: not statement.name and statement.sql == text
    (query,) = (query for query in queries_of(scenario.spec) if query.name == cut.statement)
    found = lab.dialect.bundle(query).whole if isinstance(query, Bundle) else lab.dialect.query(query)
    assert found is not None
    return lambda statement: statement.name == found.server_name or cut.statement in parts_of(statement.sql)


def parts_of(sql: str) -> list[str]:
    """The names of the statements that one is made of (see ``PostgresDialect.in_one``)."""
    return sql.removeprefix("/* ").partition(" */")[0].split(", ") if sql.startswith("/* ") else []


@contextmanager
def finished_by_another(lab: Lab, scenario: Scenario, expected: bool | None) -> Iterator[Stage]:
    """The victim dies in the block; then everything that must hold is checked, before and after the recovery."""
    with lab.stage(scenario.name.replace(":", "-"), scenario.prepare) as stage:
        assert scenario.count(acts.check(stage), stage.prepared) == 0
        yield stage
        lab.settle()
        count = scenario.count(acts.check(stage), stage.prepared)
        assert count in {0, 1}
        assert expected is None or count == expected, f"the command is committed {count} times"
        scenario.recover(stage, stage.prepared, bool(count))
        assert scenario.count(acts.check(stage), stage.prepared) == 1


def kill(lab: Lab, server: ForkServer, scenario: Scenario, cut: Cut, nth: int = 1) -> None:
    """Kill a process at the ``nth`` time it reaches a cut."""
    with finished_by_another(lab, scenario, committed_at(scenario, cut)) as stage:
        if cut.how == "hook":
            args = stage.args(stage.prepared.command)
            death = server.fork(SEND, args, kill_at=cut.name, nth=nth).wait()
            assert death.reached.count(cut.name) == nth, "the cut was not reached"
        else:
            assert isinstance(lab, PostgresLab)
            death = _KILLERS[cut.how](lab, server, scenario, stage, cut, nth)
        assert death.status == -signal.SIGKILL, death.error
        assert death.acknowledged == []


def _sent(lab: PostgresLab, server: ForkServer, scenario: Scenario, stage: Stage, cut: Cut, nth: int) -> Death:
    """The request is on its way when its sender dies; it arrives all the same."""
    with lab.hold("before_send", exchange(lab, scenario, cut), nth) as hold:
        return _kill_at(server, stage, hold)


def _reply_lost(lab: PostgresLab, server: ForkServer, scenario: Scenario, stage: Stage, cut: Cut, nth: int) -> Death:
    """The server is done, and nobody is left to hear it."""
    hold = lab.hold("after_reply", exchange(lab, scenario, cut), nth)
    try:
        return _kill_at(server, stage, hold)
    finally:
        hold.drop()


def _kill_at(server: ForkServer, stage: Stage, hold: Hold) -> Death:
    victim = server.fork(SEND, stage.args(stage.prepared.command))
    try:
        hold.wait_reached()
    finally:
        victim.kill()
        death = victim.wait()
    return death


def _waiting(lab: PostgresLab, server: ForkServer, scenario: Scenario, stage: Stage, _cut: Cut, _nth: int) -> Death:
    """The statement waits for a lock that somebody holds; its sender dies meanwhile."""
    with lab.locked(*scenario.lock(stage.prepared)):
        victim = server.fork(SEND, stage.args(stage.prepared.command))
        try:
            lab.wait_for_lock()
        finally:
            victim.kill()
            death = victim.wait()
    return death


_KILLERS: dict[str, Callable[..., Death]] = {"sent": _sent, "reply_lost": _reply_lost, "waiting": _waiting}


def trace(lab: Lab, server: ForkServer, scenario: Scenario) -> Counter[str]:
    """What the command reaches when nobody kills it; it is killed once it is acknowledged, and must be kept."""
    if scenario.name not in lab.traces:
        with finished_by_another(lab, scenario, expected=True) as stage:
            victim = server.fork(SEND, stage.args(stage.prepared.command))
            try:
                victim.wait_for("acknowledged")
            finally:
                victim.kill()
                death = victim.wait()
            assert not death.acknowledged[0].replayed
        lab.traces[scenario.name] = Counter(death.reached)
    return lab.traces[scenario.name]
