"""The part queues: real workers begin real items, and what is measured becomes tables and goals."""

import asyncio
import importlib.util

import pytest

from bench import goals, queues
from bench.noise import Machine
from bench.options import Options
from bench.queue_contestants import BY_KEY, DBOS, PACKAGES, PROCRASTINATE
from bench.report import page, tables
from bench.savers import lab


async def measured(key: str):
    async with lab(Machine()) as found:
        rows = await queues.measure(found, Options(True, 1, ("1 at once",), (key,)))
        return rows, found.left_out


@pytest.mark.timeout(400)  # five processes, each of which imports all that it works with
@pytest.mark.parametrize(
    "key",
    [
        "postgres-worker",
        pytest.param("sqlite-worker", marks=pytest.mark.exhaustive),
        "sqlite-dbos-all",
        "procrastinate",
    ],
)
def test_a_worker_begins_what_another_process_queued(key):
    contestant = BY_KEY[key]
    package = PACKAGES.get(contestant.kind)
    rows, left_out = asyncio.run(measured(key))
    if package is not None and importlib.util.find_spec(package) is None:
        assert package in left_out[key]
        assert rows == []
        return
    assert left_out == {}
    by = {row["what"]: row for row in rows}
    assert set(by) == set(queues.MEASURES)
    assert by[queues.CLAIMS]["ops"] > 0
    assert 0 < by[queues.LATENCY]["p50"] <= by[queues.LATENCY]["p95"]
    shown = [table.markdown() for table in tables.queue_tables(rows)]
    assert len(shown) == len(queues.MEASURES)
    assert all(contestant.title in text for text in shown)
    kept = {"rows": rows, "left_out": {}, "command": "a", "when": "b", "seconds": 1, "machine": {"disk": "c"}}
    assert all(text in page.generated({"queues": kept}) for text in shown)


def row(saver, what, **values):
    return {"saver": saver, "what": what, "concurrency": 4, "round": 0, "others": 0.0, "noisy": False} | values


def goal_of(what, peer):
    name = f"worker: {what}, 4 at once, {'SQLite' if peer == DBOS else 'PostgreSQL'}"
    (found,) = [goal for goal in goals.GOALS if (goal.work, goal.peer) == (name, peer)]
    return found


def test_the_goal_is_to_be_faster_than_the_fastest_setting_of_a_peer():
    rows = [
        row("sqlite-worker", queues.CLAIMS, ops=100.0),
        row("sqlite-dbos", queues.CLAIMS, ops=4.0),
        row("sqlite-dbos-all", queues.CLAIMS, ops=125.0),
        row("sqlite-worker", queues.LATENCY, p50=5.0),
        row("sqlite-dbos", queues.LATENCY, p50=500.0),
        row("sqlite-dbos-short", queues.LATENCY, p50=10.0),
    ]
    claims, latency = (goal_of(what, DBOS).measure({"queues": rows}) for what in queues.MEASURES)
    assert (claims.value, claims.detail) == (0.8, "100 / 125 a second")
    assert (latency.value, latency.detail) == (2.0, "5.00 / 10.0 ms")
    assert "missed" in goal_of(queues.CLAIMS, DBOS).verdict(claims)
    assert goal_of(queues.CLAIMS, PROCRASTINATE).measure({"queues": rows}) is None
