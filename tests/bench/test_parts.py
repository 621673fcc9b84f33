"""The parts of the bench run, and what they measure becomes tables, plots and goals."""

import asyncio
import importlib

import pytest

from bench import goals
from bench.graphs import FAN_OUT
from bench.measure import Caller, percentile, slice_of
from bench.micro import PUT
from bench.noise import Machine
from bench.options import Options
from bench.report import page, tables
from bench.savers import lab

PAIR = ("sqlite-async", "AsyncSqliteSaver")
SMALL = {
    "micro": (f"{PUT}, 1 KB, 1 ",),
    "graphs": (f"{FAN_OUT}, async, 1 ",),
    "storage": ("chat dict",),
    "growth": ("get_tuple",),
}


async def rows_of(part: str) -> list[dict]:
    async with lab(Machine()) as found:
        rows = await importlib.import_module(f"bench.{part}").measure(found, Options(True, 1, SMALL[part], PAIR))
        assert found.left_out == {}
        assert found.server is None
    return rows


@pytest.mark.parametrize("part", SMALL)
def test_a_part_measures_each_saver_and_gives_tables_and_goals(part):
    rows = asyncio.run(rows_of(part))
    assert set(PAIR) <= {row["saver"] for row in rows}
    shown = [table.markdown() for table in tables.TABLES[part](rows)]
    assert all("**ours" in text and "AsyncSqliteSaver" in text for text in shown)
    assert goals.table({part: rows}).lines
    found = {"rows": rows, "left_out": {}, "command": "a", "when": "b", "seconds": 1, "machine": {"disk": "c"}}
    drawn = page.generated({part: found})
    assert shown
    assert all(text in drawn for text in shown)


def test_goals_compare_savers_within_one_round_and_prefer_quiet_rounds():
    def row(saver, turn, p50, *, noisy=False):
        cell = {"operation": PUT, "size": 1024, "callers": 1, "round": turn}
        return {"saver": saver, "p50": p50, "ops": 1, "others": 0.5 if noisy else 0.01, "noisy": noisy} | cell

    rounds = [(1.0, 2.0, False), (1.0, 3.0, False), (10.0, 40.0, False), (1.0, 99.0, True)]
    rows = [row("postgres-async", turn, ours, noisy=noisy) for turn, (ours, _, noisy) in enumerate(rounds)]
    rows += [row("AsyncPostgresSaver", turn, peer) for turn, (_, peer, _) in enumerate(rounds)]
    (goal,) = [goal for goal in goals.GOALS if goal.work == "put, 1 KB, 1 caller, PostgreSQL"]
    reached = goal.measure({"micro": rows})
    assert (reached.value, reached.detail, reached.noisy) == (3.0, "1.00 / 3.00 ms", False)
    assert goal.verdict(reached) == "reached"
    (only_noise,) = [goal.measure({"micro": [one for one in rows if one["round"] == 3]})]
    assert only_noise.noisy


def test_a_slice_prepares_each_operation_once_and_counts_one_of_its_tries():
    prepared, done = [], []

    def prepare():
        prepared.append(1)
        return (len(prepared),)

    found = asyncio.run(slice_of(Machine(), [Caller(prepare, done.append)] * 3, 0, sync=True))
    assert found["n"] == 3  # each caller once; a noisy slice is repeated, and the quietest one counts
    assert sorted(done) == list(range(1, len(prepared) + 1))


def test_a_percentile_is_a_value_that_was_measured():
    assert percentile([3.0, 1.0, 2.0], 0.95) == 3.0
    assert percentile([float(one) for one in range(100)], 0.95) == 95.0
