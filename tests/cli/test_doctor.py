"""doctor: it names each kind of damage and where it is, nothing where there is none, and writes nothing."""

import json

import pytest

from runtime_persist import operation
from runtime_persist.engine import run as flow
from runtime_persist.inspector import doctor as doctors
from runtime_persist.queries import invariants
from runtime_persist.schema import metadata
from tests.support.graphs import chain, config, says


@operation(name="charge")
def charge(order: str) -> str:
    """Charge an order."""
    return order


@pytest.fixture
def live(runtime):
    """A run that ended, with an operation, and content outside its rows."""
    nodes = {"long": says("x" * 9_000), "pay": lambda _: {"log": [charge("7")]}}
    runtime.bind(chain(nodes), name="g").invoke({"log": []}, config("t"))
    return runtime


def looks(cli):
    done = cli("doctor", "--json")
    found = json.loads(done.stdout)
    assert done.exit_code == (6 if any(one["severity"] == "damage" for one in found["findings"]) else 0)
    return [one for one in found["findings"] if one["code"] != "SQLITE_FAULT"]


# code -> the table that is damaged, and how
DAMAGE = {
    "ATTEMPT_WITHOUT_RUN": ("attempts", "UPDATE rp_attempts SET run_id = 'gone'"),
    "EVENT_WITHOUT_RUN": ("events", "UPDATE rp_events SET run_id = 'gone' WHERE seq = 1"),
    "DOMAIN_WITHOUT_RUN": (
        "domains",
        (
            "INSERT INTO rp_domains (space, run_id, domain_id, epoch, kind, handle, state, opened_us) "
            "VALUES ('default', 'gone', 'd', 1, 'process', '{}', 'revoked', 1)"
        ),
    ),
    "TICKET_WITHOUT_RUN": (
        "tickets",
        (
            "INSERT INTO rp_tickets (space, run_id, operation_id, state, epoch, loops, tool_calls, tokens, "
            "cost_micros, reserved_us) VALUES ('default', 'gone', 'o', 'released', 1, 0, 0, 0, 0, 1)"
        ),
    ),
    "TRY_WITHOUT_OPERATION": ("operation_tries", "UPDATE rp_operation_tries SET operation_id = 'gone'"),
    "RUN_WITHOUT_ATTEMPT": ("runs", "UPDATE rp_runs SET attempt_id = 'gone'"),
    "HEAD_WITHOUT_CHECKPOINT": ("heads", "UPDATE rp_heads SET checkpoint_id = 'gone'"),
    "CHECKPOINT_WITHOUT_PARENT": ("checkpoints", "UPDATE rp_checkpoints SET parent_id = 'gone'"),
    "OWNER_WITHOUT_RUN": ("threads", "UPDATE rp_threads SET owner_run_id = 'gone'"),
    "ATTEMPTS_MISCOUNTED": ("runs", "UPDATE rp_runs SET attempt_no = attempt_no + 1"),
    "DOMAINS_MISCOUNTED": ("runs", "UPDATE rp_runs SET domains_opened = 7"),
    "TRIES_MISCOUNTED": ("operations", "UPDATE rp_operations SET try_no = 5"),
    "RUN_BLOCKED": ("runs", "UPDATE rp_runs SET revocation = 'blocked'"),
    "RUN_LEFT": ("runs", "UPDATE rp_runs SET status = 'running', phase = 'active', worker_id = 'w', expires_us = 1"),
    "LEASE_WRONG": ("runs", "UPDATE rp_runs SET phase = 'active', expires_us = 9000000000000000"),
    "EVENTS_MISCOUNTED": ("events", "DELETE FROM rp_events WHERE seq = 2"),
    "ATTEMPT_LEFT_OPEN": ("attempts", "UPDATE rp_attempts SET status = 'running', ended_us = NULL"),
    "DOMAINS_WRONG": ("runs", "UPDATE rp_runs SET domains_open = 1, domains_opened = 1"),
    "BUDGET_MISCOUNTED": ("runs", "UPDATE rp_runs SET loops_reserved = 1"),
    "CONTENT_MISSING": ("blobs", "DELETE FROM rp_blobs"),
    "CONTENT_UNREADABLE": ("checkpoints", "UPDATE rp_checkpoints SET fingerprint = metadata"),
    "CONTENT_WITHOUT_OWNER": (
        "blobs",
        (
            "INSERT INTO rp_blobs (space, owner, address, size, created_us, content) "
            "SELECT space, owner, substr(secret, 1, 16), 1, 1, secret FROM (SELECT space, 'space' AS owner, secret "
            "FROM rp_spaces) found"
        ),
    ),
}
ELSEWHERE = {"SCOPE_TAKEN_TWICE", "GRAPH_OVER_LIMIT", "SLOTS_TAKEN_TWICE"}
"""Rules whose damage tests/soak/test_live_invariants.py does, with several runs."""


def test_every_kind_of_finding_is_damaged_here_or_there():
    said = {one.code for one in doctors._CHECKS} | set(doctors._RULES.values()) | set(doctors._CONTENT)
    assert set(doctors._RULES) == set(invariants.RULES)
    assert said == DAMAGE.keys() | ELSEWHERE


def test_each_kind_of_damage_is_named_with_its_place_and_what_to_do(cli, live, raw):
    assert looks(cli) == []
    for code, (table, damage) in DAMAGE.items():
        before = raw.rows(f"SELECT * FROM rp_{table}")
        raw.rows(damage)
        found = looks(cli)
        assert code in {one["code"] for one in found}, (code, found)
        assert all(one["what"] and one["where"] and one["do"] for one in found)
        assert "{" not in str([one["what"] + one["do"] for one in found])
        raw.rows(f"DELETE FROM rp_{table}")
        for row in before:
            marks = ", ".join("?" * len(row))
            raw.rows(f"INSERT INTO rp_{table} ({', '.join(row)}) VALUES ({marks})", *row.values())
        assert looks(cli) == [], code


def test_looking_writes_nothing_and_says_what_it_looked_at(cli, live, raw):
    def everything():
        return {name: sorted(map(str, raw.rows(f"SELECT * FROM {name}"))) for name in metadata.tables}

    before = everything()
    shown = cli("doctor")
    assert shown.exit_code == 0
    assert "kinds of fault" in shown.stdout
    assert everything() == before


def test_a_clock_that_differs_is_told(live, monkeypatch):
    monkeypatch.setattr(doctors.time, "time_ns", lambda: 1_000)
    (found,) = [one for one in flow(doctors.examine(live)).findings if one.code == "CLOCK_DIFFERS"]
    assert found.severity == "attention"
    assert "leases go by the database's" in found.what


def test_a_sqlite_with_the_wal_reset_fault_is_told(live):
    database = doctors.DatabaseView(dialect="sqlite", version="3.40.1", url="x", warning="it damages files")
    (found,) = doctors._of_database(database, 0)
    assert (found.code, found.severity, found.where) == ("SQLITE_FAULT", "attention", "3.40.1")
