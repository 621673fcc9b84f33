"""Eight processes claim at once. None knows of the others; every gate holds at every moment, and graphs take turns."""

import json
import sqlite3
from collections import Counter
from itertools import pairwise
from urllib.parse import urlsplit

import pytest

from runtime_persist import Runtime
from runtime_persist.commands.claim_next import PICKS
from runtime_persist.dialects import dialect_of, parse_url
from runtime_persist.engine import Engine
from runtime_persist.queries.claiming import HEADS_OF_GRAPHS
from tests.capacity import programs
from tests.fixtures.raw import PostgresRaw
from tests.support.graphs import chain, says
from tests.support.queues import fill

PROCESSES = 8
_ALL = ("rp_runs", "rp_threads", "rp_graphs", "rp_instances")
STATISTICS = [_ALL[:number] for number in range(5)] + [_ALL[number:] for number in range(1, 4)]
"""Of which tables autovacuum may have made statistics at some moment, and of which not yet."""
BIG, SMALL, WAITING = "big", "small", 100_000
OVER = """
    SELECT 'graph ' || graph AS what, count(*) AS taken FROM rp_runs
    WHERE status IN ('dispatching', 'running', 'lost') AND graph = 'narrow' GROUP BY graph HAVING count(*) > 3
    UNION ALL
    SELECT 'scope ' || scope, count(*) FROM rp_runs
    WHERE status IN ('dispatching', 'running', 'lost') AND scope IS NOT NULL GROUP BY scope HAVING count(*) > 1
    UNION ALL
    SELECT 'instance ' || instance_id, count(*) FROM rp_runs
    WHERE status IN ('dispatching', 'running', 'lost') AND instance_id IS NOT NULL
    GROUP BY instance_id HAVING count(*) > 2"""


def started(fork, program, *args):
    """Start the processes and give them the word together."""
    children = [fork(program, *args, *more) for more in ([()] * PROCESSES if program is programs.claims else _SEEDS)]
    for child in children:
        child.until("ready")
    for child in children:
        child.give_the_word()
    return children


_SEEDS = [(seed,) for seed in range(PROCESSES)]


def test_no_gate_is_ever_exceeded_and_no_run_is_claimed_twice(runtime, raw, shared_url, fork):
    graph = chain({"node": says("x")})
    runtime.bind(graph, name="narrow", max_concurrency=3)
    runtime.bind(graph, name="wide")
    for number in range(12):
        runtime.runs.start("narrow", {"log": []}, scope="one at a time" if number % 4 == 0 else None)
        runtime.runs.start("wide", {"log": []}, scope="one at a time" if number % 4 == 1 else None)
    children = started(fork, programs.churns, shared_url, ["narrow", "wide"], 2)
    while raw.rows("SELECT 1 AS one FROM rp_runs WHERE finished_us IS NULL LIMIT 1"):
        assert raw.rows(OVER) == []
    assert sum(child.result() for child in children) == 24
    found = raw.rows("SELECT status, epoch, attempt_no FROM rp_runs")
    assert Counter(tuple(row.values()) for row in found) == {("failed", 1, 1): 24}


def test_a_hundred_thousand_runs_of_one_graph_delay_another_graph_by_one_claim(runtime, raw, shared_url, fork):
    """At every claim, with one claimer and with eight at once; and a look costs the same as in a short queue."""
    graph = chain({"node": says("x")})
    for name, rows in ((BIG, WAITING), (SMALL, 20)):
        runtime.bind(graph, name=name)
        fill(raw, name, rows)
    alone = fork(programs.claims, shared_url, [BIG, SMALL], 6)
    alone.until("ready")
    alone.give_the_word()
    order = [name for name, _, _ in alone.result()]
    assert all(one != other for one, other in pairwise(order))
    children = started(fork, programs.claims, shared_url, [BIG, SMALL], 3)
    claims = [claim for child in children for claim in child.result()]
    assert len(claims) == 3 * PROCESSES
    assert delayed(claims) == []
    claimed = raw.rows("SELECT run_id FROM rp_runs WHERE status = 'dispatching'")
    numbers = sorted(int(row["run_id"].rpartition("-")[2]) for row in claimed if row["run_id"].startswith(SMALL))
    assert numbers == list(range(1, len(numbers) + 1))  # first come, first served, inside a graph
    for analyzed in STATISTICS:
        assert read_by_a_claim(shared_url, raw, analyzed) < 500, analyzed


def test_a_run_that_is_queued_between_a_look_and_its_claim_is_delayed_by_one_claim_too(runtime, raw, shared_url):
    """The claimer had seen one graph only, whose claims are nobody's turn."""
    graph = chain({"node": says("x")})
    for name in (BIG, SMALL):
        runtime.bind(graph, name=name)
    fill(raw, BIG, 3)
    queued = []

    def hook(cut):
        if cut == "claim_next:before:begin" and not queued:
            queued.append(runtime.runs.start(SMALL, {"log": []}))

    with Runtime(Engine(shared_url, hook=hook), None) as other:
        claimer, _ = programs.claimer(other, [BIG, SMALL], slots=10)
        assert [claimer.claim()[1]["graph"] for _ in range(4)] == [BIG, SMALL, BIG, BIG]
    assert queued


def delayed(claims):
    """Two claims of the big graph, one behind the other, while none of the small one's went on and one waited."""
    small = [claim for claim in claims if claim[0] == SMALL]
    big = sorted((claim for claim in claims if claim[0] == BIG), key=lambda claim: claim[1])
    last = max((ended for _, _, ended in small), default=0)
    return [
        (first, second)
        for first in big
        for second in big
        if first[2] <= second[1]
        and second[2] < last
        and not any(began < second[2] and ended > first[1] for _, began, ended in small)
    ]


def read_by_a_claim(url, raw, analyzed):
    """What the two statements that look for a run read: pages of PostgreSQL, hundreds of steps of SQLite."""
    parsed = parse_url(url)
    dialect = dialect_of(parsed)
    given = {"space": "default", "graph": BIG, "instance_id": "i", "ends_max": 16}
    statements = [dialect.query(HEADS_OF_GRAPHS), dialect.query(PICKS["queued"])]
    if parsed.dialect == "postgresql":
        with_list = given | {"graphs": [f"{BIG}:", f"{SMALL}:"]}
        forget_statistics(raw)
        for table in analyzed:
            raw.rows(f"ANALYZE {table}")
        return sum(_pages(parsed.location, one, one.filled(with_list)) for one in statements)
    steps = 0
    connection = sqlite3.connect(urlsplit(url).path)

    def step():
        nonlocal steps
        steps += 1
        return 0

    connection.set_progress_handler(step, 100)
    for one in statements:
        values = one.filled(given | {"one": f"{BIG}:", "other": f"{SMALL}:"})
        connection.execute(one.sql.replace("(:graphs)", "(:one, :other)"), values).fetchall()
    connection.close()
    return steps


def forget_statistics(raw):
    """As before anything was analyzed (the number of a table's pages is always known)."""
    for table in _ALL:
        raw.rows(f"ALTER TABLE {table} SET (autovacuum_enabled = false)")
    raw.rows("DELETE FROM pg_statistic WHERE starelid IN (SELECT oid FROM pg_class WHERE relname LIKE 'rp%')")
    raw.rows("UPDATE pg_class SET reltuples = -1, relpages = 0 WHERE relname LIKE 'rp%'")


def _pages(location, statement, values):
    raw = PostgresRaw(location)
    literals = {str: "'{}'".format, int: str, list: lambda listed: f"ARRAY{listed}"}
    given = ", ".join(literals[type(values[name])](values[name]) for name in statement.order)
    raw.rows("SET plan_cache_mode = force_generic_plan")
    raw.rows(f"PREPARE looked AS {statement.sql}")
    found = raw.rows(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE looked({given})")
    raw.close()
    plan = json.loads(found[0]["QUERY PLAN"])[0]["Plan"]
    return plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]


@pytest.mark.parametrize(
    ("claims", "found"),
    [
        ([(BIG, 0, 1), (SMALL, 1, 2), (BIG, 2, 3), (SMALL, 3, 4)], 0),
        ([(BIG, 0, 1), (BIG, 1, 2), (SMALL, 2, 3)], 1),  # twice, while the small one waited
        ([(BIG, 0, 1), (BIG, 1, 2), (SMALL, 0, 3)], 0),  # its claim went on at the same time
        ([(SMALL, 0, 1), (BIG, 1, 2), (BIG, 2, 3)], 0),  # nothing of it waited any more
    ],
)
def test_what_counts_as_a_delay(claims, found):
    assert len(delayed(claims)) == found
