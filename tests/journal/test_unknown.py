"""A try that started and was never settled is unknown; ``on_unknown`` decides, and nobody guesses (user pain C3)."""

import asyncio

import pytest
from langgraph.errors import GraphBubbleUp

from runtime_persist import DidNotHappen, operation
from runtime_persist.errors import (
    AlreadyAnswered,
    IllegalTransition,
    LeaseLost,
    OperationFailed,
    OperationNotFound,
    OperationUnknown,
)
from tests.support import programs
from tests.support.graphs import chain, config
from tests.support.journal import Losing, Outside
from tests.support.leases import run_out

HELLO = {"log": []}


@pytest.fixture
def outside():
    return Outside()


def graph_of(charge):
    return chain({"node": lambda _: {"log": [charge("a")["receipt"]]}})


async def lost_in_the_call(runtime, way, raw, **options):
    """Run the operation with its lease lost between begin and complete; return the bound graph and the outside."""
    outside = Losing(raw)
    graph = runtime.bind(graph_of(outside.charge(**options)), name="g")
    with pytest.raises(LeaseLost):
        await way(graph, "invoke", HELLO, config())
    (tried,) = raw.rows("SELECT status FROM rp_operation_tries")
    assert tried["status"] == "started"  # the result was refused: it does not count
    return graph, outside


async def test_a_result_that_comes_after_the_lease_was_lost_is_refused(runtime, way, raw):
    _, outside = await lost_in_the_call(runtime, way, raw)
    assert outside.calls == ["a"]
    assert raw.value("SELECT result FROM rp_operations") is None
    assert raw.value("SELECT status FROM rp_runs") == "running"


async def test_retry_calls_again_with_the_same_key(runtime, way, raw):
    graph, outside = await lost_in_the_call(runtime, way, raw, on_unknown="retry")
    output = await way(graph, "invoke", None, config())
    assert output["log"] == [2]
    assert outside.keys[0] == outside.keys[1]
    tries = raw.rows("SELECT try_no, status FROM rp_operation_tries ORDER BY try_no")
    assert [(row["try_no"], row["status"]) for row in tries] == [(1, "unknown"), (2, "succeeded")]


async def test_fail_raises_now_and_on_every_later_call_and_never_calls_again(runtime, way, raw):
    graph, outside = await lost_in_the_call(runtime, way, raw, on_unknown="fail")
    for _ in range(2):
        with pytest.raises(OperationFailed) as caught:
            await way(graph, "invoke", None, config())
        assert not isinstance(caught.value, GraphBubbleUp)  # the node may handle it
    assert outside.calls == ["a"]
    assert raw.value("SELECT status FROM rp_operation_tries") == "unknown"


async def test_ask_leaves_the_run_waiting_with_the_question(runtime, way, raw):
    graph, outside = await lost_in_the_call(runtime, way, raw)
    for _ in range(2):  # continuing without an answer asks again
        with pytest.raises(OperationUnknown) as caught:
            await way(graph, "invoke", None, config())
        assert "what='a'" in str(caught.value)
        (run,) = await way(runtime.runs, "list")
        assert run.status == "waiting_approval"
        question = await way(runtime.runs, "question", run.run_id)
        assert (question["kind"], question["name"], question["try_no"]) == ("unknown_operation", "charge", 1)
        assert question["idempotency_key"] == outside.keys[0]
        assert question["operation_id"] == caught.value.details["operation_id"]
    assert outside.calls == ["a"]


async def test_a_person_says_that_it_happened(runtime, way, raw):
    graph, outside = await lost_in_the_call(runtime, way, raw)
    with pytest.raises(OperationUnknown) as caught:
        await way(graph, "invoke", None, config())
    operation_id = caught.value.details["operation_id"]
    assert await way(runtime.runs, "resolve", operation_id, happened=True, result={"receipt": "found"}) == "queued"
    output = await way(graph, "invoke", None, config())
    assert output["log"] == ["found"]
    assert outside.calls == ["a"]


async def test_a_person_says_that_it_did_not_happen(runtime, way, raw):
    graph, outside = await lost_in_the_call(runtime, way, raw)
    with pytest.raises(OperationUnknown) as caught:
        await way(graph, "invoke", None, config())
    operation_id = caught.value.details["operation_id"]
    await way(runtime.runs, "resolve", operation_id, happened=False)
    output = await way(graph, "invoke", None, config())
    assert output["log"] == [2]
    assert outside.keys[0] == outside.keys[1]
    with pytest.raises(AlreadyAnswered) as refused:
        await way(runtime.runs, "resolve", operation_id, happened=True)
    assert refused.value.details["answered"] == [operation_id]
    assert refused.value.details["answered_by"] == "user"


async def test_there_is_nothing_to_say_about_an_operation_that_nobody_asked_about(runtime, way, raw, outside):
    graph = runtime.bind(graph_of(outside.charge()), name="g")
    await way(graph, "invoke", HELLO, config())
    with pytest.raises(IllegalTransition):
        await way(runtime.runs, "resolve", raw.value("SELECT operation_id FROM rp_operations"), happened=False)
    assert raw.value("SELECT status FROM rp_operations") == "succeeded"


async def test_there_is_nothing_to_say_about_an_unknown_id(runtime, way):
    with pytest.raises(OperationNotFound):
        await way(runtime.runs, "resolve", "nothing", happened=True)


@pytest.mark.parametrize("policy", ["ask", "retry", "fail"])
async def test_after_sigkill_inside_the_call(open_runtime, shared_url, way, raw_of, fork, policy, outside):
    """User pains C3 and C7: the run, its operation and its key are the same in the process that takes over."""
    runtime = open_runtime()
    raw = raw_of(runtime)
    killed = fork(programs.charger, shared_url, policy)
    _, key = killed.until("called")
    killed.kill()
    (run,) = await way(runtime.runs, "list")
    first = raw.one("SELECT operation_id, created_us FROM rp_operations")
    run_out(raw)
    assert (await way(runtime.runs, "get", run.run_id)).shown == "unknown"
    graph = runtime.bind(graph_of(outside.charge(on_unknown=policy)), name="g")
    if policy == "retry":
        assert (await way(graph, "invoke", None, config()))["log"] == [1]
        assert outside.keys == [key]
    else:
        with pytest.raises(OperationUnknown if policy == "ask" else OperationFailed):
            await way(graph, "invoke", None, config())
        assert outside.calls == []
    assert raw.one("SELECT operation_id, created_us FROM rp_operations") == first
    (after,) = await way(runtime.runs, "list")
    assert (after.run_id, after.attempt_no, after.epoch) == (run.run_id, 2, 2)


async def test_a_copied_thread_asks_for_itself_and_its_answer_reaches_its_own_run(runtime, way, raw):
    graph, outside = await lost_in_the_call(runtime, way, raw)
    run_out(raw)
    with pytest.raises(OperationUnknown):
        await way(graph, "invoke", None, config())
    runtime.checkpointer.copy_thread("t", "copy")
    with pytest.raises(OperationUnknown) as caught:
        await way(graph, "invoke", None, config("copy"))
    asked = caught.value.details["operation_id"]
    runtime.runs.resolve(asked, happened=True, result={"receipt": 1})
    assert (await way(graph, "invoke", None, config("copy")))["log"] == [1]
    assert outside.calls == ["a"]  # the source's effect did not fire again
    statuses = {run.thread_id: run.status for run in runtime.runs.list()}
    assert statuses == {"t": "waiting_approval", "copy": "succeeded"}


async def test_what_a_run_left_open_when_it_ended_is_settled_for_who_calls_it_again(runtime, way, raw):
    """The run is stopped while nobody knows what became of its call: it ends, and the call stays unknown."""
    graph, outside = await lost_in_the_call(runtime, way, raw)
    with pytest.raises(OperationUnknown) as caught:
        await way(graph, "invoke", None, config())
    operation_id = caught.value.details["operation_id"]
    (ended,) = await way(runtime.runs, "list")
    await way(runtime.runs, "cancel", ended.run_id)
    assert raw.value("SELECT status FROM rp_operation_tries") == "unknown"
    result = {"receipt": "found"}
    assert await way(runtime.runs, "resolve", operation_id, happened=True, result=result) == "cancelled"
    assert (await way(graph, "invoke", None, config()))["log"] == ["found"]
    assert outside.calls == ["a"]
    assert {run.run_id: run.status for run in await way(runtime.runs, "list")}[ended.run_id] == "cancelled"
    with pytest.raises(AlreadyAnswered):
        await way(runtime.runs, "resolve", operation_id, happened=False)


@pytest.mark.parametrize("policy", ["retry", "reconcile"])
async def test_a_call_that_its_caller_cancelled_is_unknown_as_soon_as_another_try_begins(
    open_runtime, raw_of, outside, policy
):
    """In one attempt, so no takeover has said it: the one who starts the next try does."""
    runtime, known, in_call = open_runtime(), [], asyncio.Event()
    raw = raw_of(runtime)

    def ask(request, idempotency_key, tries):
        del request, idempotency_key
        known.extend((one.try_no, one.status) for one in tries)
        return DidNotHappen()

    @operation(name="charge", key=str, on_unknown="retry" if policy == "retry" else ask)
    async def charge(what, *, idempotency_key):
        outside.call(what, idempotency_key)
        if len(outside.calls) == 1:
            in_call.set()
            await asyncio.Event().wait()
        during.extend(statuses())
        return "charged"

    def statuses():
        return [row["status"] for row in raw.rows("SELECT status FROM rp_operation_tries ORDER BY try_no")]

    async def node(_):
        first = asyncio.ensure_future(charge("a"))
        await in_call.wait()
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        return {"log": [await charge("a")]}

    during = []
    graph = runtime.bind(chain({"node": node}), name="g")
    assert (await graph.ainvoke(HELLO, config()))["log"] == ["charged"]
    first = "unknown" if policy == "retry" else "failed"  # the outside said that it did not happen
    assert during == [first, "started"]
    assert statuses() == [first, "succeeded"]
    assert known == ([] if policy == "retry" else [(1, "unknown")])
    assert outside.keys[0] == outside.keys[1]
