"""The part big_run: a run that is made long goes on waiting, and what is measured becomes tables and goals."""

import asyncio

import pytest

from bench import big_run, bulk, goals
from bench.big_run_sides import QUESTIONS, make
from bench.noise import Machine
from bench.options import Options
from bench.report import tables
from bench.savers import lab
from runtime_persist import Runtime
from runtime_persist.testing.faults import read_rows


@pytest.mark.parametrize("database", ["SQLite", pytest.param("PostgreSQL", marks=pytest.mark.exhaustive)])
def test_each_question_about_a_short_and_a_long_run_is_answered_and_compared(database):
    async def measured():
        async with lab(Machine()) as found:
            return await big_run.measure(found, Options(quick=True, rounds=1, only=(database,)))

    rows = asyncio.run(measured())
    assert len(rows) == len(QUESTIONS) * 2
    assert min(row["ms"] for row in rows) > 0
    (table,) = tables.big_run_tables(rows)
    assert [line[0] for line in table.lines] == [*QUESTIONS, "peak memory of the process, MB"]
    mine = [goal for goal in goals.GOALS if goal.work.startswith("long run") and goal.work.endswith(database)]
    assert [goal.measure({"big_run": rows}) is None for goal in mine] == [False] * (len(QUESTIONS) + 1)


def test_a_run_that_is_made_long_still_waits_for_its_answer(tmp_path):
    where = str(tmp_path / "agents.db")
    run_id = make(where)
    asyncio.run(bulk.lengthen(where, 50))
    with Runtime.open(where) as runtime:
        rows = read_rows(runtime.engine)
        assert min(len(rows[table]) for table in ("operations", "operation_tries", "checkpoints", "events")) > 50
        assert runtime.runs.get(run_id).status == "waiting_approval"
        assert "once more?" in str(runtime.runs.question(run_id))


def test_the_memory_of_a_long_run_is_compared_with_that_of_a_short_one():
    rows = [
        {"database": "SQLite", "size": size, "asked": "inspect", "round": 0, "ms": 1.0, "peak": peak, "noisy": False}
        for size, peak in ((10, 100e6), (1_000, 150e6))
    ]
    (goal,) = [goal for goal in goals.GOALS if goal.work == "long run: peak memory, SQLite"]
    reached = goal.measure({"big_run": rows})
    assert (reached.value, reached.detail, goal.verdict(reached)) == (1.5, "150 / 100 MB", "**missed**")
