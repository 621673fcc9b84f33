"""``step``: a block is journalled like a call, with begin and complete apart."""

import asyncio

import pytest
from langgraph.func import entrypoint, task
from langgraph.types import interrupt
from pydantic import SecretStr

from runtime_persist import step
from runtime_persist.errors import (
    InvalidInput,
    LeaseLost,
    OperationFailed,
    OperationMismatch,
)
from tests.support.graphs import chain, config, fanned, nested, resume
from tests.support.journal import Outside, StepCharger

HELLO = {"log": []}


@pytest.fixture
def outside():
    return Outside()


def asks(_):
    return {"log": [interrupt("go on?")]}


# --- the block --------------------------------------------------------------------------------------------------------


async def test_a_block_that_runs_again_has_its_result_and_makes_no_call(runtime, way, outside, raw):
    charger = StepCharger(way, outside)

    if way.asynchronous:

        async def node(state):
            return {"log": [*(await charger.node(state))["log"], interrupt("?")]}

    else:

        def node(state):
            return {"log": [*charger.node(state)["log"], interrupt("?")]}

    graph = runtime.bind(chain({"node": node}), name="g")
    await way(graph, "invoke", HELLO, config())
    output = await way(graph, "invoke", resume("yes"), config())
    assert (output["log"], outside.calls) == ([1, "yes"], ["a"])
    row = raw.one("SELECT * FROM rp_operations")
    assert (row["name"], row["request"], row["status"], row["phase"]) == (
        "charge",
        "what='a'",
        "succeeded",
        "completed",
    )
    assert row["idempotency_key"] == outside.keys[0]


async def test_a_block_that_raises_has_failed_and_is_told_so_in_the_same_run(runtime, way, outside, raw):
    outside.fails.append(TimeoutError("down"))
    charger, seen = StepCharger(way, outside), []

    async def anode(state):
        try:
            await charger.node(state)
        except (TimeoutError, OperationFailed) as error:
            seen.append(type(error).__name__)
        return {"log": [interrupt("?")]}

    def node(state):
        try:
            charger.node(state)
        except (TimeoutError, OperationFailed) as error:
            seen.append(type(error).__name__)
        return {"log": [interrupt("?")]}

    graph = runtime.bind(chain({"node": anode if way.asynchronous else node}), name="g")
    await way(graph, "invoke", HELLO, config())
    await way(graph, "invoke", resume("yes"), config())
    assert (seen, outside.calls) == (["TimeoutError", "OperationFailed"], ["a"])
    assert raw.value("SELECT error_text FROM rp_operations") == "down"


def test_a_block_that_is_left_without_a_result_has_returned_none(runtime, raw):
    seen = []

    def node(_):
        with step("log") as s:
            seen.append(s.replayed)
        seen.append(s.result)
        return {"log": [interrupt("?")]}

    graph = runtime.bind(chain({"node": node}), name="g")
    graph.invoke(HELLO, config())
    graph.invoke(resume(1), config())
    assert seen == [False, None, True, None]
    assert raw.value("SELECT status FROM rp_operations") == "succeeded"


def test_a_result_counts_also_when_the_block_fails_behind_it(runtime, raw):
    def node(_):
        with step("charge") as s:
            if not s.replayed:
                s.complete("charged")
                raise ValueError("after it")
        return {"log": [s.result]}

    graph = runtime.bind(chain({"node": node}), name="g")
    with pytest.raises(ValueError, match="after it"):
        graph.invoke(HELLO, config())
    assert raw.value("SELECT status FROM rp_operations") == "succeeded"
    assert graph.invoke(None, config())["log"] == ["charged"]


def test_the_first_result_and_the_later_ones_are_equal_values(runtime):
    seen = []

    def node(_):
        with step("fetch") as s:
            if not s.replayed:
                seen.append(s.complete({"tuple": (1, 2), "big": "x" * 50_000}))
        seen.append(s.result)
        interrupt("?")

    graph = runtime.bind(chain({"node": node}), name="g")
    graph.invoke(HELLO, config())
    graph.invoke(resume(1), config())
    assert len(seen) == 3
    assert all(one == seen[0] for one in seen)


def test_a_second_result_is_refused(runtime):
    def node(_):
        with step("charge") as s:
            s.complete(1)  # also when it is replayed: the call would be made twice
        return {"log": [interrupt("?")]}

    graph = runtime.bind(chain({"node": node}), name="g")
    graph.invoke(HELLO, config())
    with pytest.raises(InvalidInput, match="replayed"):
        graph.invoke(resume(1), config())


async def test_another_request_under_its_identity_is_refused(runtime, way, outside):
    whats = iter(["a", "b"])

    class Changing(StepCharger):
        def of(self, state):
            self.what = next(whats) if self.fresh else self.what
            self.fresh = False
            return self.what

    charger = Changing(way, outside)

    async def anode(state):
        charger.fresh = True
        await charger.node(state)
        interrupt("?")

    def node(state):
        charger.fresh = True
        charger.node(state)
        interrupt("?")

    graph = runtime.bind(chain({"node": anode if way.asynchronous else node}), name="g")
    await way(graph, "invoke", HELLO, config())
    with pytest.raises(OperationMismatch, match=r"what='a'.*what='b'"):
        await way(graph, "invoke", resume(1), config())


def test_a_cancelled_block_leaves_its_outcome_unknown(runtime, raw):
    async def main():
        entered = asyncio.Event()

        async def node(_):
            async with step("charge"):
                entered.set()
                await asyncio.sleep(60)

        graph = runtime.bind(chain({"node": node}), name="g")
        call = asyncio.ensure_future(graph.ainvoke(HELLO, config()))
        await entered.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    asyncio.run(main())
    assert raw.value("SELECT status FROM rp_operations") == "pending"
    assert runtime.runs.list()[0].status == "cancelled"


def test_outside_of_any_graph_the_block_runs_and_nothing_is_journalled():
    with step("charge", {"a": 1}) as s:
        assert (s.replayed, s.try_no) == (False, 1)
        assert s.idempotency_key
        s.first_output()
        s.provider_request_id = "req"
        s.complete("done")
    assert s.result == "done"

    async def main():
        async with step("charge") as s:
            await s.acomplete(1)
        return s.result

    assert asyncio.run(main()) == 1


@pytest.mark.parametrize(
    "make",
    [
        lambda: step(""),
        lambda: step("x", key=""),
        lambda: step("x", on_unknown="guess"),
        lambda: step("x", {"card": 1}, redact={"crad"}),
        lambda: step("x").replayed,
        lambda: step("x").result,
        lambda: step("x").complete(1),
        lambda: [one.__enter__() for one in [step("x")] * 2],
    ],
)
def test_wrong_uses_are_refused(make):
    with pytest.raises(InvalidInput):
        make()


# --- what is known of a try -------------------------------------------------------------------------------------------


async def test_the_request_id_and_the_first_output_are_stored_before_the_result(runtime, way, raw):
    def stream(s):
        s.provider_request_id = "req-7"
        s.first_output("text")
        s.first_output("tool_name")

    def node(_):
        with step("model") as s:
            stream(s)
        return {"log": [s.result]}

    async def anode(_):
        async with step("model") as s:
            stream(s)
        return {"log": [s.result]}

    graph = runtime.bind(chain({"node": anode if way.asynchronous else node}), name="g")
    await way(graph, "invoke", HELLO, config())
    tried = raw.one("SELECT * FROM rp_operation_tries")
    assert (tried["provider_request_id"], tried["first_output_kind"], tried["status"]) == ("req-7", "text", "succeeded")
    assert tried["started_us"] <= tried["first_output_us"] <= tried["ended_us"]


async def test_a_note_of_a_lost_run_is_refused_like_its_result(runtime, way, raw):
    def lose(s):
        raw.rows("UPDATE rp_runs SET epoch = 9")
        s.provider_request_id = "req-7"

    def node(_):
        with step("model") as s:
            lose(s)

    async def anode(_):
        async with step("model") as s:
            lose(s)

    graph = runtime.bind(chain({"node": anode if way.asynchronous else node}), name="g")
    with pytest.raises(LeaseLost):
        await way(graph, "invoke", HELLO, config())
    assert raw.value("SELECT provider_request_id FROM rp_operation_tries") is None


# --- places -----------------------------------------------------------------------------------------------------------


async def test_in_subgraphs_and_parallel_sends(runtime, way, outside):
    charger = StepCharger(way, outside)
    graph = runtime.bind(nested(fanned(charger.node)), name="sends")
    output = await way(graph, "invoke", {"log": [], "items": [3, 1, 2]}, config("sends"))
    assert sorted(outside.calls) == [1, 2, 3]
    assert sorted(output["log"][-5:-2]) == [1, 2, 3]
    graph = runtime.bind(nested(chain({"charges": StepCharger(way, outside, "inner").node, "asks": asks})), name="sub")
    await way(graph, "invoke", HELLO, config("sub"))
    output = await way(graph, "invoke", resume("yes"), config("sub"))
    assert output["log"][-3:] == [4, "yes", "after"]
    assert outside.calls[3:] == ["inner"]
    assert len(set(outside.keys)) == 4


async def test_in_tasks_of_an_entrypoint(runtime, way, outside):
    charger = StepCharger(way, outside)
    if way.asynchronous:

        @task
        async def pay(what):
            return (await charger.node(what))["log"][0]

        @entrypoint()
        async def body(items):
            paid = [await future for future in [pay(item) for item in items]]
            own = (await charger.node("body"))["log"][0]
            return [len(paid), own > 0, interrupt("?")]

    else:

        @task
        def pay(what):
            return charger.node(what)["log"][0]

        @entrypoint()
        def body(items):
            paid = [future.result() for future in [pay(item) for item in items]]
            own = charger.node("body")["log"][0]
            return [len(paid), own > 0, interrupt("?")]

    graph = runtime.bind(body, name="entry")
    await way(graph, "invoke", [1, 2], config())
    assert await way(graph, "invoke", resume("ok"), config()) == [2, True, "ok"]
    assert sorted(outside.calls, key=str) == [1, 2, "body"]


# --- secrets ----------------------------------------------------------------------------------------------------------


def test_what_is_redacted_is_never_in_clear_and_still_compared(runtime, raw):
    cards = iter(["4111111111111111", "4111111111111111", "5500000000000004"])

    def node(_):
        card, request = next(cards), {"payment": {"card": None, "token": SecretStr("tok-123456")}, "cents": 5}
        request["payment"]["card"] = card
        with step("charge", request, redact={"card"}) as s:
            if not s.replayed:
                raise ValueError(f"card {card} with tok-123456 refused")
        interrupt("?")

    def safe(state):
        try:
            node(state)
        except (ValueError, OperationFailed):
            interrupt("one?")
            interrupt("two?")

    graph = runtime.bind(chain({"node": safe}), name="g")
    graph.invoke(HELLO, config())
    row = raw.one("SELECT * FROM rp_operations")
    assert "cents=5" in row["request"]
    assert row["error_text"] == "card [hidden] with [hidden] refused"
    graph.invoke(resume(1), config())  # the same card: the stored failure
    with pytest.raises(OperationMismatch):
        graph.invoke(resume(1), config())
    dump = repr(raw.dump())
    assert "4111111111111111" not in dump
    assert "tok-123456" not in dump
