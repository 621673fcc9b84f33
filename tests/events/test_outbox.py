"""The outbox of a space: at least once, in each run's order, only what is committed, and nothing is ever skipped."""

import re
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import update

from runtime_persist.commands.parts import positions
from runtime_persist.dialects.sql import bind
from runtime_persist.errors import ConsumerMoved, InvalidInput
from runtime_persist.plan import Query
from runtime_persist.queries import events as event_queries
from runtime_persist.schema import runs
from tests.events import programs
from tests.fixtures.raw import connect, wait_until
from tests.support.graphs import chain, says

GRAPH = chain({"node": says("x")})


@pytest.fixture
def runtime(open_runtime):
    made = open_runtime()
    made.bind(GRAPH, name="g")
    return made


def start(runtime, *threads):
    started = [runtime.runs.start("g", {"log": []}, thread_id=thread).run_id for thread in threads]
    let_older_end(runtime.engine)
    return started


def let_older_end(engine):
    """Wait until no older transaction is open anywhere on the server (its own tasks have some): the outbox does."""
    if engine.url.dialect == "postgresql":
        with ThreadPoolExecutor(1) as other:  # this thread may have an event loop
            other.submit(_wait_for_older, engine).result()


def _wait_for_older(engine):
    raw = connect(engine)
    mine = raw.value("SELECT pg_current_xact_id()::text::bigint AS id")
    oldest = "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS id"
    wait_until(lambda: raw.value(oldest) > mine, "all older transactions have ended")
    raw.close()


def deliver(runtime, consumer):
    return [(event.run_id, event.seq) for event in runtime.events(consumer=consumer, wait=False)]


async def collect(runtime, way, consumer):
    events = runtime.events(consumer=consumer, wait=False)
    found = [event async for event in events] if way.asynchronous else list(events)
    return [(event.run_id, event.seq) for event in found]


async def test_every_consumer_gets_every_event_once_when_nothing_goes_wrong(runtime, way):
    first, second = start(runtime, "a", "b")
    assert await collect(runtime, way, "billing") == [(first, 1), (first, 2), (second, 1), (second, 2)]
    assert await collect(runtime, way, "billing") == []
    (third,) = start(runtime, "c")
    assert await collect(runtime, way, "billing") == [(third, 1), (third, 2)]
    assert len(await collect(runtime, way, "mail")) == 6


def test_what_was_not_asked_beyond_comes_again(runtime):
    """The last event that was yielded counts as handled when the next one is asked for, or by ack()."""
    (run_id,) = start(runtime, "a")
    events = runtime.events(consumer="billing", wait=False)
    found = iter(events)
    next(found)
    found.close()
    assert deliver(runtime, "billing") == [(run_id, 1), (run_id, 2)]
    (run_id,) = start(runtime, "b")
    events = runtime.events(consumer="billing", wait=False)
    next(iter(events))
    events.ack()
    assert deliver(runtime, "billing") == [(run_id, 2)]


def test_a_consumer_that_is_killed_before_its_acknowledgement_gets_it_again(runtime, shared_url, fork):
    (run_id,) = start(runtime, "a")
    child = fork(programs.consumer, shared_url, "billing", pauses=True)
    assert child.until("event") == (run_id, 1)
    child.give_the_word()
    assert child.until("event") == (run_id, 2)
    child.kill()
    assert fork(programs.consumer, shared_url, "billing", pauses=False).result() == [(run_id, 1), (run_id, 2)]
    assert deliver(runtime, "billing") == []


def test_of_two_processes_under_one_name_the_second_is_told(runtime, shared_url, fork):
    start(runtime, "a", "b")
    children = [fork(programs.acknowledger, shared_url, "billing") for _ in range(2)]
    for child in children:
        child.until("ready")
    for child in children:
        child.give_the_word()
    assert sorted(child.result() for child in children) == ["CONSUMER_MOVED", "acknowledged"]
    assert len(deliver(runtime, "billing")) == 2


def test_the_one_that_was_too_late_hears_it_while_it_iterates(runtime):
    start(runtime, "a")
    slow = iter(runtime.events(consumer="billing", wait=False))
    next(slow)
    assert len(deliver(runtime, "billing")) == 2
    with pytest.raises(ConsumerMoved, match="billing"):
        list(slow)


async def test_whoever_waits_gets_what_is_committed_later(runtime, open_runtime, way):
    (first,) = start(runtime, "a")
    other = open_runtime()
    found = []
    if way.asynchronous:
        async for event in other.events(consumer="billing"):
            found.append((event.run_id, event.seq))
            if len(found) == 2:
                (second,) = start(runtime, "b")
            if len(found) == 4:
                break
    else:
        for event in other.events(consumer="billing"):
            found.append((event.run_id, event.seq))
            if len(found) == 2:
                (second,) = start(runtime, "b")
            if len(found) == 4:
                break
    assert found == [(first, 1), (first, 2), (second, 1), (second, 2)]


def test_a_name_that_is_none_is_refused(runtime):
    for name in ("", None, 7):
        with pytest.raises(InvalidInput, match="consumer"):
            runtime.events(consumer=name)


def test_spaces_do_not_hear_one_another(runtime, open_runtime):
    start(runtime, "a")
    assert deliver(open_runtime(space="elsewhere"), "billing") == []


def test_an_event_that_code_of_schema_1_0_writes_is_delivered_too(runtime, raw):
    (run_id,) = start(runtime, "a")
    assert len(deliver(runtime, "billing")) == 2
    old = "INSERT INTO rp_events (space, run_id, seq, type, actor, created_us) VALUES (?, ?, 3, 'run.queued', 'x', 1)"
    raw.rows(old, "default", run_id)
    let_older_end(runtime.engine)
    assert deliver(runtime, "billing") == [(run_id, 3)]


# --- PostgreSQL: transactions that overlap --------------------------------------------------------------------------


def test_a_transaction_that_commits_late_is_not_skipped(postgres_world, postgres_raw):
    world, late = postgres_world, postgres_raw()
    old = world.queued("old")
    let_older_end(world.engine)
    late.rows("BEGIN")
    late.rows(
        "INSERT INTO rp_events (space, run_id, seq, type, actor, created_us) VALUES (?, ?, 3, 'run.queued', 'x', 1)",
        world.space,
        old,
    )
    new = world.queued("new")
    assert places(world) == [(old, 1), (old, 2)]  # the new one is committed, and waits for the older transaction
    late.rows("COMMIT")
    let_older_end(world.engine)
    assert places(world) == [(old, 1), (old, 2), (old, 3), (new, 1), (new, 2)]


def test_a_run_that_an_older_transaction_writes_last_keeps_its_order(postgres_world, postgres_raw):
    """Its id was given when it locked something else: alone it would put the later event in front of the earlier."""
    world, older = postgres_world, postgres_raw()
    held = world.owned()
    older.rows("BEGIN")
    own = older.value("SELECT pg_current_xact_id()::text::bigint AS id")
    world.begun(held)
    before = world.run(held.run_id)["event_position"]
    assert before > own
    # What every command that appends does to the run's row, here in a transaction that began before.
    step = update(runs).values(event_position=positions.following()).where(runs.c.run_id == bind(runs.c.run_id))
    sql = world.engine.dialect.query(Query("step", step)).sql
    older.rows(re.sub(r"\$1(::\w+)?", "?", sql), held.run_id)
    older.rows("COMMIT")
    assert world.run(held.run_id)["event_position"] == before


def places(world):
    rows = world.engine.coordinator.read(
        "outbox", lambda: event_queries.outbox(world.space, event_queries.BEGINNING, 100)
    ).result()
    return [(row["run_id"], row["seq"]) for row in rows]
