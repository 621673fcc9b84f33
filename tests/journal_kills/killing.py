"""One case: a process buys and is killed, others go on and a person answers; what is outside and in the journal."""

import signal
from collections import Counter
from typing import Any

from runtime_persist.commands.parts.spec import HotCommand
from runtime_persist.coordinator.transaction import bundle_of
from runtime_persist.testing.faults import check_invariants, read_rows
from runtime_persist.testing.proxy import Hold, PostgresProxy, Statement
from tests.faults.kit import Death, ForkServer
from tests.fixtures.raw import PostgresRaw, Raw, connect, wait_until
from tests.journal_kills.cases import SPECS, Case
from tests.journal_kills.outside import Outside, receipt
from tests.journal_kills.places import COUNTED, ends_with, orders_of
from tests.journal_kills.programs import open_runtime
from tests.support.leases import run_out

PROGRAMS = "tests.journal_kills.programs"
BOUGHT = ("buy", "pay")
"""Names of the operations that sell something."""
ANSWERS_MAX = 2
_VICTIMS = (
    "SELECT count(*) AS n FROM pg_stat_activity WHERE application_name = 'victim' AND datname = current_database()"
)


class Database:
    """A database of one case, seen from a process that is not killed."""

    def __init__(self, url: str, victim_url: str) -> None:
        self.victim_url = victim_url
        self.runtime = open_runtime(url)
        self.raw: Raw = connect(self.runtime.engine)

    def close(self) -> None:
        self.raw.close()
        self.runtime.close()

    def settle(self) -> None:
        """A dead process holds nothing in a file."""

    def operations(self) -> dict[str, dict[str, Any]]:
        """The operations that buy, by their idempotency keys, each with the statuses of its tries."""
        tries: dict[str, list[str]] = {}
        for row in self.raw.rows("SELECT operation_id, status FROM rp_operation_tries ORDER BY try_no"):
            tries.setdefault(row["operation_id"], []).append(row["status"])
        sql = "SELECT operation_id, name, status, idempotency_key, request FROM rp_operations"
        rows = [row for row in self.raw.rows(sql) if row["name"] in BOUGHT]
        return {row["idempotency_key"]: {**row, "tries": tries[row["operation_id"]]} for row in rows}


class Sqlite(Database):
    """A file."""

    def __init__(self, url: str) -> None:
        super().__init__(url, url)


class Postgres(Database):
    """A database that victims reach through a proxy."""

    def __init__(self, url: str, proxy: PostgresProxy) -> None:
        super().__init__(url, proxy.dsn(url) + "&application_name=victim&connect_timeout=1")
        self._proxy = proxy
        self._holder = PostgresRaw(url)

    def close(self) -> None:
        self._holder.close()
        super().close()

    def settle(self) -> None:
        """Wait until the server has noticed that the victim is gone."""
        wait_until(lambda: self.raw.value(_VICTIMS) == 0, "the server noticed the death")

    def hold(self, when: Any, command: str, nth: int) -> Hold:
        """Hold the ``nth`` exchange in which a command stands, alone or in a batch."""
        spec = SPECS[command]
        assert isinstance(spec, HotCommand)
        bundle = self.runtime.engine.dialect.bundle(bundle_of(spec))
        names = {made.server_name for made in (bundle.whole, bundle.together) if made is not None}
        seen: Counter[bool] = Counter()

        def match(statement: Statement) -> bool:
            seen[statement.name in names] += 1
            return statement.name in names and seen[True] == nth

        return self._proxy.hold(when, match)

    def wait_for_lock(self) -> None:
        """Wait until the victim's statement waits for a lock."""
        waiting = f"{_VICTIMS} AND wait_event_type = 'Lock'"
        wait_until(lambda: self.raw.value(waiting) > 0, "the victim waits for a lock")

    def lock(self) -> None:
        """Hold the run's row, so that everything of it waits."""
        self._holder.rows("BEGIN")
        assert self._holder.rows("SELECT 1 AS one FROM rp_runs FOR UPDATE")

    def unlock(self) -> None:
        self._holder.rows("ROLLBACK")


# --- dying ----------------------------------------------------------------------------------------------------------


def die(database: Database, server: ForkServer, outside: Outside, case: Case) -> None:
    """Kill a process at the case's cut, and wait until nothing of it is on its way any more."""
    args = {**args_of(case, outside), "url": database.victim_url}
    if case.cut.how == "hook":
        death = server.fork(f"{PROGRAMS}:lives", args, kill_at=case.cut.name, nth=case.nth).wait()
        assert death.reached.count(case.cut.name) == case.nth, f"the cut was not reached; {death.told}"
    else:
        assert isinstance(database, Postgres)
        death = _held(database, server, args, case)
    assert death.status == -signal.SIGKILL, death.error
    database.settle()
    outside.settle()
    run_out(database.raw)


def args_of(case: Case, outside: Outside) -> dict[str, Any]:
    return {"place": case.place, "shape": case.shape, "port": outside.port, "policy": case.policy, "way": case.way}


def _held(database: Postgres, server: ForkServer, args: dict[str, Any], case: Case) -> Death:
    hold = database.hold("after_reply" if case.cut.how == "reply_lost" else "before_send", case.command, case.nth)
    victim = server.fork(f"{PROGRAMS}:lives", args)
    locked = False
    try:
        hold.wait_reached(30)
        if case.cut.how == "waiting":
            database.lock()
            locked = True
            hold.release()
            database.wait_for_lock()
    finally:
        victim.kill()
        death = victim.wait()
        if locked:
            database.unlock()
        if case.cut.how == "reply_lost":
            hold.drop()
        else:
            hold.release()  # it arrives all the same
    return death


def committed(case: Case) -> bool | None:
    """Whether the command is committed when its process dies there; None: either is legal."""
    if case.cut.how == "waiting":
        return None
    return case.cut.how != "hook" or case.cut.name.endswith(":after:commit")


# --- going on -------------------------------------------------------------------------------------------------------


def recover(database: Database, server: ForkServer, outside: Outside, case: Case) -> list[str]:
    """Let other processes go on until the run has succeeded; a person answers what is asked, by what is outside.

    Returns the keys that a person was asked about.
    """
    asked: list[str] = []
    args = {**args_of(case, outside), "url": database.victim_url.replace("=victim", "=second")}
    expected = ends_with(case.place, case.shape)
    for _ in range(ANSWERS_MAX + 1):
        look(database, outside)
        death = server.fork(f"{PROGRAMS}:goes_on", args).wait()
        assert death.status == 0, death.error
        (ended,) = [value for kind, value in death.told if kind == "ended"]
        if ended[0] == "output":
            assert ended[1] == expected
            return asked
        assert ended[1] in {"OPERATION_UNKNOWN", "waiting_approval"}, ended
        assert case.policy == "ask"
        for key, row in database.operations().items():
            if row["status"] != "succeeded" and row["tries"][-1] in {"started", "unknown"} and key not in asked:
                happened = any(key in keys for keys in outside.sold.values())
                asked.append(key)
                order = next(order for order in orders_of(case.place) if f"'{order}'" in row["request"])
                result = receipt(order) if happened else None
                database.runtime.runs.resolve(row["operation_id"], happened=happened, result=result)
                break
        else:
            raise AssertionError(f"nobody knows what is asked: {database.operations()}")
    raise AssertionError("it never ends")


def look(database: Database, outside: Outside) -> None:
    """What must hold at every moment."""
    assert check_invariants(read_rows(database.runtime.engine)) == []
    operations = database.operations()
    sold = Counter(key for keys in outside.sold.values() for key in keys)
    assert set(sold) <= set(operations), "something was sold that the journal does not know"
    for key, row in operations.items():
        if row["status"] == "succeeded":
            assert sold[key] >= 1, "success, and nothing was sold"
        may = sum(status != "failed" for status in row["tries"])
        assert sold[key] <= max(may, 1), f"sold {sold[key]} times, and the journal knows of {row['tries']}"


def settled(database: Database, outside: Outside, case: Case) -> Counter[str]:
    """What must hold when the run has succeeded; how often each order was sold."""
    look(database, outside)
    (run,) = database.runtime.runs.list(thread_id="t1")
    assert run.status == "succeeded"
    operations = database.operations()
    assert {row["status"] for row in operations.values()} == {"succeeded"}
    assert len(operations) == len(orders_of(case.place))
    assert set(outside.sold) == set(orders_of(case.place))
    for keys in outside.sold.values():
        assert len(set(keys)) == 1, "one order under two keys"
        if len(keys) > 1:
            assert case.policy == "retry", "sold twice, and nobody had chosen that"
            assert "unknown" in operations[keys[0]]["tries"]
    if case.shape in COUNTED:
        orders = len(orders_of(case.place))
        assert tuple(run.budget["tool_calls"]) == (orders, 0, orders), "what is counted is not what was called"
        tickets = database.raw.rows("SELECT invocation, count(*) AS n FROM rp_tickets GROUP BY invocation")
        assert [row["n"] for row in tickets] == [orders], "one invocation was counted under two names"
        # A task's calls are inside the entrypoint's body, which is an invocation by itself.
        assert (tickets[0]["invocation"] is not None) == (case.shape == "invoked" or case.place == "task")
    return Counter({order: len(keys) for order, keys in outside.sold.items()})
