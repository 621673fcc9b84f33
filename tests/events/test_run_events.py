"""The events of one run: all of them, in order, to the last one of its life."""

import pytest

from runtime_persist.errors import InvalidInput, RunNotFound
from runtime_persist.model.event_types import EVENT_FIELDS
from tests.support.graphs import chain, config, fails, says

GRAPH = {"g": chain({"node": says("x")})}
LIFE = [
    "run.created", "run.queued", "lease.claimed", "attempt.claimed", "run.dispatching", "lease.activated",
    "attempt.start_requested", "attempt.running", "run.running", "attempt.succeeded", "run.succeeded",
]  # fmt: skip


@pytest.fixture
def run(runtime):
    runtime.bind(GRAPH["g"], name="g")
    return runtime.runs.start("g", {"log": []}, thread_id="t")


async def test_they_come_in_order_and_say_who_did_what(run, way):
    first, second = await way.all(run, "events")
    assert (first.seq, first.type, first.payload) == (1, "run.created", {"graph": "g"})
    assert (second.seq, second.type, second.payload) == (2, "run.queued", {})
    assert (first.run_id, first.actor_type, first.actor_id, first.epoch) == (run.run_id, "user", None, 0)
    assert 0 < first.created_us <= second.created_us
    assert await way.all(run, "events", 1) == [second]
    assert await way.all(run, "events", 2) == []


async def test_whoever_waits_gets_them_as_they_come_until_the_run_is_final(run, works, way):
    with works(GRAPH):
        found = await way.all(run, "events", wait=True)
    assert [event.type for event in found] == LIFE
    assert [event.seq for event in found] == list(range(1, len(LIFE) + 1))
    claimed = found[2]
    assert claimed.actor_type == "worker"
    assert claimed.actor_id
    assert found[-1].attempt_id == claimed.attempt_id or claimed.attempt_id is None


async def test_who_comes_when_all_is_over_waits_for_nothing(runtime, works, way):
    graphs = {"g": chain({"node": fails(ValueError("no luck"))})}
    runtime.bind(graphs["g"], name="g")
    run = runtime.runs.start("g", {"log": []}, thread_id="t")
    with works(graphs):
        (*_, last) = await way.all(run, "events", wait=True)
    assert last.type == "run.failed"
    assert await way.all(run, "events", last.seq - 1, wait=True) == [last]
    assert await way.all(run, "events", last.seq, wait=True) == []
    assert await way.all(run, "events", last.seq + 7, wait=True) == []


async def test_an_owned_calls_events_reach_who_waits_in_its_process(runtime, way):
    graph = runtime.bind(chain({"node": says("x")}), name="g")
    await way(graph, "invoke", {"log": []}, config())
    (record,) = await way(runtime.runs, "list")
    assert (await way.all(runtime.runs, "events", record.run_id, wait=True))[-1].type == "run.succeeded"


async def test_an_unknown_run_and_a_number_that_is_none_are_refused(runtime, way):
    with pytest.raises(RunNotFound):
        await way.all(runtime.runs, "events", "nobody")
    with pytest.raises(RunNotFound):
        await way.all(runtime.runs, "events", "nobody", wait=True)
    for after in (-1, "1", None, True):
        with pytest.raises(InvalidInput, match="after"):
            await way.all(runtime.runs, "events", "nobody", after=after)


def test_nothing_but_what_its_type_allows_is_ever_said(run, works):
    with works(GRAPH):
        for event in run.events(wait=True):
            assert set(event.payload) <= set(EVENT_FIELDS[event.type])
