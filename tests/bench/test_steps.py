"""The part steps: journalled calls, and what is measured becomes a table and goals."""

import asyncio

import pytest

from bench import goals, steps
from bench.noise import Machine
from bench.options import Options
from bench.report import tables
from bench.savers import lab


async def measured(key):
    async with lab(Machine()) as found:
        return await steps.measure(found, Options(quick=True, rounds=1, keys=(key,)))


@pytest.mark.parametrize("key", ["sqlite-ours", "postgres-ours", "sqlite-tasks"])
def test_each_makes_its_steps_in_a_process_of_its_own(key):
    (row,) = asyncio.run(measured(key))
    assert row["saver"] == key
    assert row["ms"] > 0
    (table,) = tables.step_tables([row])
    assert len(table.lines) == 1


def test_the_goal_is_half_the_time_of_a_dbos_step():
    rows = [
        {"saver": key, "round": 0, "ms": ms, "others": 0.0, "noisy": False}
        for key, ms in (("sqlite-ours", 1.0), ("sqlite-dbos", 2.5))
    ]
    (goal,) = [goal for goal in goals.GOALS if goal.work == "a journalled call, SQLite"]
    reached = goal.measure({"steps": rows})
    assert (reached.value, reached.detail, goal.verdict(reached)) == (0.4, "1.00 / 2.50 ms", "reached")
