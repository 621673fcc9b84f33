"""runs.start, get, list, cancel, result: queued runs, and idempotency keys."""

import random
import string
from concurrent.futures import ThreadPoolExecutor

import pytest

from runtime_persist import RetryPolicy
from runtime_persist.errors import (
    IdempotencyMismatch,
    IllegalTransition,
    InvalidInput,
    ResultPending,
    RunCancelled,
    RunFailed,
    UnknownGraph,
)
from runtime_persist.model import limits
from tests.support.graphs import chain, config, fails, says


@pytest.fixture
def graph(runtime):
    return runtime.bind(chain({"node": says("x")}), name="g")


async def test_a_started_run_is_queued_with_its_input(runtime, graph, way):
    run = await way(runtime.runs, "start", "g", {"log": [1]}, thread_id="t")
    record = await way(run, "record")
    assert (record.status, record.shown, record.graph, record.thread_id) == ("queued", "queued", "g", "t")
    assert (record.attempt_no, record.epoch, record.phase) == (0, 0, "released")
    assert record == await way(runtime.runs, "get", run.run_id)
    assert runtime.runs.handle(run.run_id).thread_id == "t"


async def test_a_run_has_the_deadline_and_the_policy_it_was_started_with(runtime, graph, way, raw):
    policy = RetryPolicy(max_attempts=5)
    run = await way(runtime.runs, "start", "g", {}, deadline=60, retry=policy)
    record = await way(run, "record")
    assert record.deadline_us == record.created_us + 60_000_000
    assert (record.failures, record.next_attempt_us) == (0, None)
    assert raw.value("SELECT retry_policy FROM rp_runs") == policy.encoded()


async def test_without_a_thread_id_each_run_has_a_thread_of_its_own(runtime, graph, way):
    runs = [await way(runtime.runs, "start", "g", {}) for _ in range(2)]
    assert len({run.thread_id for run in runs}) == 2


async def test_an_unknown_graph_is_refused_and_known_ones_are_named(runtime, graph, way, raw):
    before = raw.dump()
    with pytest.raises(UnknownGraph, match="known: g"):
        await way(runtime.runs, "start", "other", {})
    assert raw.dump() == before


async def test_the_newest_come_first(runtime, graph, way):
    ids = [(await way(runtime.runs, "start", "g", {}, thread_id=f"t{n % 2}")).run_id for n in range(4)]
    assert [run.run_id for run in await way(runtime.runs, "list")] == ids[::-1]
    assert [run.run_id for run in await way(runtime.runs, "list", thread_id="t1")] == [ids[3], ids[1]]
    assert [run.run_id for run in await way(runtime.runs, "list", limit=1)] == [ids[3]]
    assert await way(runtime.runs, "list", limit=0) == []


async def test_a_queued_run_that_is_cancelled_ends_at_once(runtime, graph, way):
    run = await way(runtime.runs, "start", "g", {}, thread_id="t")
    assert await way(run, "cancel") == "cancelled"
    assert await way(run, "cancel") == "cancelled"
    with pytest.raises(RunCancelled, match="cancel"):
        await way(run, "result")


async def test_results_of_every_end(runtime, graph, way):
    await way(graph, "invoke", {"log": []}, config("good"))
    broken = runtime.bind(chain({"node": fails(ValueError("no luck"))}), name="broken")
    with pytest.raises(ValueError, match="no luck"):
        await way(broken, "invoke", {"log": []}, config("bad"))
    (good,) = await way(runtime.runs, "list", thread_id="good")
    (bad,) = await way(runtime.runs, "list", thread_id="bad")
    assert await way(runtime.runs, "result", good.run_id) == {"log": ["x"], "n": 0}
    with pytest.raises(RunFailed, match="no luck") as caught:
        await way(runtime.runs, "result", bad.run_id)
    assert caught.value.details["error_code"] == "ValueError"
    assert (bad.status, bad.error_code, bad.error_summary) == ("failed", "ValueError", "no luck")


@pytest.mark.parametrize("seconds", [0, 0.05])
async def test_a_result_that_is_not_there_yet_is_told_with_the_status(runtime, graph, way, seconds):
    run = await way(runtime.runs, "start", "g", {}, thread_id="t")
    with pytest.raises(ResultPending, match="queued"):
        await way(run, "result", timeout=seconds)


async def test_only_a_waiting_run_can_be_answered(runtime, graph, way):
    run = await way(runtime.runs, "start", "g", {}, thread_id="t")
    with pytest.raises(IllegalTransition):
        await way(runtime.runs, "answer", run.run_id, "yes")


# --- idempotency ------------------------------------------------------------------------------------------------------


async def test_the_same_key_and_request_is_the_same_run(runtime, graph, way, raw):
    first = await way(runtime.runs, "start", "g", {"log": [1]}, thread_id="t", idempotency_key="k")
    before = raw.dump()
    again = await way(runtime.runs, "start", "g", {"log": [1]}, thread_id="t", idempotency_key="k")
    assert (again.run_id, again.thread_id) == (first.run_id, first.thread_id)
    assert raw.dump() == before


async def test_the_same_key_without_a_thread_id_is_the_same_run_and_thread(runtime, graph, way):
    first, again = [await way(runtime.runs, "start", "g", {}, idempotency_key="k") for _ in range(2)]
    assert (again.run_id, again.thread_id) == (first.run_id, first.thread_id)
    assert len(await way(runtime.runs, "list")) == 1


async def test_the_key_is_remembered_when_the_run_has_ended(runtime, graph, way):
    first = await way(runtime.runs, "start", "g", {}, thread_id="t", idempotency_key="k")
    await way(first, "cancel")
    assert (await way(runtime.runs, "start", "g", {}, thread_id="t", idempotency_key="k")).run_id == first.run_id


@pytest.mark.parametrize(
    "other",
    [{"graph": "h"}, {"input": {"log": [2]}}, {"thread_id": "u"}, {"thread_id": None}],
    ids=lambda o: next(iter(o)),
)
async def test_the_same_key_with_another_request_is_refused(runtime, graph, way, raw, other):
    runtime.bind(chain({"node": says("x")}), name="h")
    request = {"graph": "g", "input": {"log": [1]}, "thread_id": "t", "idempotency_key": "k"}
    await way(runtime.runs, "start", **request)
    before = raw.dump()
    with pytest.raises(IdempotencyMismatch, match="'k'"):
        await way(runtime.runs, "start", **(request | other))
    after = raw.dump()
    assert after["rp_runs"] == before["rp_runs"]
    assert after["rp_events"] == before["rp_events"]


@pytest.mark.parametrize("key", ["", "a\0b", 7])
async def test_keys_that_cannot_be_used_are_refused(runtime, graph, way, key):
    with pytest.raises(InvalidInput, match="idempotency_key"):
        await way(runtime.runs, "start", "g", {}, idempotency_key=key)


def drawn(length):
    """Return a text that no database can compress to fit an index."""
    return "".join(random.Random(1).choices(string.ascii_letters + string.digits, k=length))


async def test_names_are_as_long_as_every_database_can_look_up(runtime, graph, way, open_runtime):
    longest = drawn(limits.NAME_BYTES_MAX)
    with open_runtime(space=longest) as other:
        other.bind(chain({"node": says("x")}), name=longest)
        terms = {"thread_id": longest, "idempotency_key": longest}
        runs = [await way(other.runs, "start", longest, {}, **terms) for _ in range(2)]
        assert runs[0].run_id == runs[1].run_id
        assert [event.seq for event in other.events(consumer=longest, wait=False)] == [1, 2]
    for length in (limits.NAME_BYTES_MAX + 1, 10_000):
        name = drawn(length)
        with pytest.raises(InvalidInput, match="at most 512 bytes"):
            await way(runtime.runs, "start", "g", {}, idempotency_key=name)
        with pytest.raises(InvalidInput, match="at most 512 bytes"):
            runtime.bind(chain({"node": says("x")}), name=name)
        with pytest.raises(InvalidInput, match="at most 512 bytes"):
            runtime.events(consumer=name)
        with pytest.raises(InvalidInput, match="at most 512 bytes"):
            open_runtime(space=name)


@pytest.mark.parametrize("thread_id", ["t", None])
def test_eight_threads_with_one_key_start_one_run(open_runtime, runtime, graph, thread_id):
    runtimes = [runtime, open_runtime()]

    def start(n):
        return runtimes[n % 2].runs.start("g", {"log": [1]}, thread_id=thread_id, idempotency_key="k").run_id

    with ThreadPoolExecutor(8) as pool:
        ids = set(pool.map(start, range(16)))
    assert [run.run_id for run in runtime.runs.list()] == list(ids)
