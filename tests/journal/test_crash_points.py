"""The table of docs/operations.md, row by row: a process is killed, another one goes on, and the outside counts."""

import threading
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest

from runtime_persist.demo.effect_server import Ledger, handler
from runtime_persist.engine import run
from runtime_persist.inspector.operations import load_operations
from tests.fixtures.raw import wait_until
from tests.support import programs_operations
from tests.support.leases import run_out

PAGE = (Path(__file__).parents[2] / "docs" / "operations.md").read_text()
POLICIES = ("ask", "retry", "fail", "a function")
OUTCOMES = {
    "the call is made": ["ch_1"],
    "the call is made again, with the same key": ["ch_1"],
    "the stored result is given": ["ch_1"],
    "a person is asked": "OPERATION_UNKNOWN",
    "`OperationFailed`": "OPERATION_FAILED",
    "the outside is asked; it did not happen; the call is made again, with the same key": ["ch_1"],
    "the outside is asked; it happened; its answer is given": ["ch_1"],
    "the next try is made when it is due": ["ch_1"],
}


def table():
    """The rows of the page's table: killed, policy, requests outside, shown, what recovery does, requests then."""
    lines = PAGE[PAGE.index("| killed |") :].split("\n\n", 1)[0].splitlines()[2:]
    return [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in lines]


ROWS = [
    (killed, policy, *rest)
    for killed, said, *rest in table()
    for policy in (["ask"] if said == "any" else [said.strip("`")])
]


def test_every_point_is_in_the_table_with_every_policy_that_matters():
    expected = {(point, policy) for point in programs_operations.POINTS[1:3] for policy in POLICIES}
    expected |= {(point, "ask") for point in programs_operations.POINTS if point not in programs_operations.POINTS[1:3]}
    assert {row[:2] for row in ROWS} == expected
    assert {row[4] for row in ROWS} == set(OUTCOMES)


@pytest.fixture
def ledger():
    return Ledger()


@pytest.fixture
def port(ledger):
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler(ledger))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(("killed", "policy", "before", "shown", "recovery", "after"), ROWS)
def test_what_the_table_says_of_it_is_so(
    open_runtime, raw_of, shared_url, fork, ledger, port, killed, policy, before, shown, recovery, after
):
    runtime = open_runtime()
    raw = raw_of(runtime)
    child = fork(programs_operations.payer, shared_url, port, policy, killed)
    if killed == "between two tries":
        due = "SELECT 1 AS one FROM rp_operations WHERE next_attempt_us IS NOT NULL"
        wait_until(lambda: raw.rows(due), "the first try failed")
    else:
        child.until("there")
    child.kill()
    run_out(raw)
    assert len(ledger.requests) == int(before)
    found = run(load_operations(runtime.engine, None, 10, unknown=False))
    assert [one.shown for one in found] == ([] if shown == "not begun" else [shown])
    raw.rows("UPDATE rp_operations SET next_attempt_us = 1 WHERE next_attempt_us IS NOT NULL")  # the hour is over
    again = fork(programs_operations.recoverer, shared_url, port, policy).result()
    assert again == OUTCOMES[recovery]
    assert len(ledger.requests) == int(after)
    assert len({request["key"] for request in ledger.requests}) <= 1
    if recovery == "a person is asked":
        happened = bool(ledger.charges)
        operation_id = raw.value("SELECT operation_id FROM rp_operations")
        result = {"charge_id": "ch_1"} if happened else None
        runtime.runs.resolve(operation_id, happened=happened, result=result)
        assert fork(programs_operations.recoverer, shared_url, port, policy).result() == ["ch_1"]
        assert len(ledger.requests) == 1
