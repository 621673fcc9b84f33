"""Every example runs, on SQLite and on PostgreSQL, and prints what it promises."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
PROMISES = {
    "01_checkpointer.py": ["STALE_WRITER", "n = 1"],
    "02_owned_run.py": ["waiting_approval - pay 42.00?", "approved by Ada", "succeeded - calls made: 1"],
    "03_worker.py": ["Hello Ada - succeeded", "Hello Grace - succeeded"],
    "04_remote_runtime.py": ["reported: True succeeded", "afterwards: False late", "42 - succeeded"],
    "05_agent.py": [
        "waiting_approval",
        "charged 42.00 / more than 1,000.00 is not allowed / shipping approved",
        "charges made: 1 - model calls: 2",
    ],
    "06_payment.py": ["the first process: SIGKILL", "order-7: 4200 cents", "requests: 2 - charges: 1"],
    "07_email.py": [
        "the first process: SIGKILL",
        "waiting_approval - what became of mail to='ada@example.com'",
        "sent, says the server",
        "mails: 1",
    ],
    "08_budgeted_agent.py": [
        "3 of 3 loops are spent",
        "waiting_approval - budget",
        "EUR 1.1, GBP 1.3, JPY 1.4",
        "loops: 4 - tokens: 400",
        "tool calls: 4 - looked up: EUR GBP GBP JPY",
    ],
    "09_support.py": [
        "the first process: SIGKILL",
        "it is whole and as it was written; who wrote it is not proved",
        "nothing proves what became of pay(order='order-7', card='hidden:",
        "the call was started, its outcome was never committed, and its on_unknown is ask",
        "nothing until somebody answers: that queues it",
    ],
}


def test_every_example_is_listed():
    assert {path.name for path in EXAMPLES.glob("*.py")} == set(PROMISES)


LONG = {("postgresql", "09_support.py")}
"""A dozen processes each: in the full run only."""


@pytest.mark.parametrize(
    ("database", "name"),
    [
        pytest.param(database, name, marks=[pytest.mark.exhaustive] if (database, name) in LONG else [])
        for database in ("sqlite", "postgresql")
        for name in sorted(PROMISES)
    ],
)
def test_an_example_runs_and_prints_what_it_promises(name, database, tmp_path, request):
    url = f"sqlite:///{tmp_path / 'x.db'}" if database == "sqlite" else request.getfixturevalue("postgres_dsn")
    done = subprocess.run(
        [sys.executable, EXAMPLES / name, url], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    for promise in PROMISES[name]:
        assert promise in done.stdout
    assert "4111111111111111" not in done.stdout
