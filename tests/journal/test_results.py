"""@operation: the stored result is returned whenever the node runs again; nothing is called twice."""

import asyncio

import pytest
from langgraph.func import entrypoint, task
from langgraph.graph import START, StateGraph
from langgraph.types import RetryPolicy, interrupt

from runtime_persist import operation
from runtime_persist.errors import (
    InvalidInput,
    OperationFailed,
    OperationMismatch,
    OperationNeedsRun,
    OperationUnsupported,
)
from tests.support.graphs import State, chain, config, fanned, nested, resume
from tests.support.journal import Outside

HELLO = {"log": []}


@pytest.fixture
def outside():
    return Outside()


def charges_then_asks(charge, count=1):
    def node(_):
        receipts = [charge(n) for n in range(count)]
        return {"log": [*receipts, interrupt("go on?")]}

    return node


# --- where it is called -----------------------------------------------------------------------------------------------


def test_outside_of_any_graph_it_is_a_plain_call(outside):
    charge = outside.charge()
    assert charge("a") == {"receipt": 1, "what": "a"}
    assert charge("a", idempotency_key="mine") == {"receipt": 2, "what": "a"}
    assert outside.keys[1] == "mine"
    assert outside.keys[0] not in {"", None, "mine"}


def test_outside_of_any_graph_an_async_function_is_a_plain_call(outside):
    assert asyncio.run(outside.acharge()("a")) == {"receipt": 1, "what": "a"}


def test_the_function_keeps_its_name_and_text():
    @operation(name="charge")
    def documented(a: int) -> int:
        """What it does."""
        return a

    assert (documented.__name__, documented.__doc__) == ("documented", "What it does.")


@pytest.mark.parametrize(
    "options", [{"name": ""}, {"name": "a\0b"}, {"name": None}, {"name": "x", "on_unknown": "guess"}]
)
def test_bad_declarations_are_refused_when_decorating(options):
    with pytest.raises(InvalidInput):
        operation(**options)


async def test_inside_a_graph_without_a_run_it_is_refused(runtime, way, outside):
    charge = outside.charge()
    graph = chain({"node": lambda _: {"log": [charge("a")]}}, checkpointer=runtime.checkpointer)
    with pytest.raises(OperationNeedsRun, match=r"runtime\.bind"):
        await way(graph, "invoke", HELLO, config())
    assert outside.calls == []


async def test_durability_exit_is_refused(runtime, way, outside):
    charge = outside.charge()
    graph = runtime.bind(chain({"node": lambda _: {"log": [charge("a")]}}), name="g")
    with pytest.raises(OperationUnsupported, match="exit"):
        await way(graph, "invoke", HELLO, config(), durability="exit")
    assert outside.calls == []


async def test_arguments_that_cannot_be_stored_are_refused_before_the_call(runtime, way, outside):
    charge = outside.charge()
    graph = runtime.bind(chain({"node": lambda _: {"log": [charge(lambda: 1)]}}), name="g")
    with pytest.raises(OperationUnsupported, match="arguments"):
        await way(graph, "invoke", HELLO, config())
    assert outside.calls == []


# --- stored results ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("again", ["same runtime", "new runtime"])
async def test_an_answered_interrupt_does_not_call_again(open_runtime, way, outside, again):
    """User pain C1: the whole node runs again on every answer."""
    charge = outside.charge()
    runtime = open_runtime()
    graph = runtime.bind(chain({"node": charges_then_asks(charge, 3)}), name="g")
    await way(graph, "invoke", HELLO, config())
    if again == "new runtime":
        graph = open_runtime().bind(chain({"node": charges_then_asks(charge, 3)}), name="g")
    output = await way(graph, "invoke", resume("yes"), config())
    assert outside.calls == [0, 1, 2]
    assert len(set(outside.keys)) == 3
    assert output["log"] == [{"receipt": n + 1, "what": n} for n in range(3)] + ["yes"]


async def test_three_questions_in_a_loop_call_three_times(runtime, way, outside, raw):
    """User pain C1: nine entries of the body for three answers."""
    charge, entered = outside.charge(), []

    def loop(_):
        entered.append(1)
        log = []
        for n in range(3):
            log.append(charge(f"ask-{n}")["receipt"])
            log.append(interrupt(n))
        return {"log": log}

    graph = runtime.bind(chain({"loop": loop}), name="g")
    await way(graph, "invoke", HELLO, config())
    for answer in "abc":
        output = await way(graph, "invoke", resume(answer), config())
    assert output["log"] == [1, "a", 2, "b", 3, "c"]
    assert len(entered) == 4
    assert outside.calls == ["ask-0", "ask-1", "ask-2"]
    rows = raw.rows("SELECT ordinal, try_no, status FROM rp_operations ORDER BY ordinal")
    assert [(row["ordinal"], row["try_no"], row["status"]) for row in rows] == [
        (f"#{n}", 1, "succeeded") for n in range(3)
    ]


async def test_a_node_that_langgraph_tries_again_gets_the_stored_result(runtime, way, outside):
    charge, tries = outside.charge(), []

    def flaky(_):
        receipt = charge("a")
        tries.append(1)
        if len(tries) < 3:
            msg = "flaky"
            raise ConnectionError(msg)
        return {"log": [receipt]}

    builder = StateGraph(State)
    builder.add_node("flaky", flaky, retry_policy=RetryPolicy(max_attempts=3, initial_interval=0.001, jitter=False))
    builder.add_edge(START, "flaky")
    graph = runtime.bind(builder.compile(), name="g")
    output = await way(graph, "invoke", HELLO, config())
    assert output["log"] == [{"receipt": 1, "what": "a"}]
    assert (len(tries), outside.calls) == (3, ["a"])


async def test_after_a_node_error_only_the_failed_operation_is_called_again_with_its_key(runtime, way, outside):
    good, bad = outside.charge("good"), outside.charge("bad")

    def node(_):
        return {"log": [good("a"), bad("b")]}

    def breaks(_):
        receipt = good("a")
        outside.fails.append(TimeoutError("down"))
        return {"log": [receipt, bad("b")]}

    graph = runtime.bind(chain({"node": breaks}), name="g")
    with pytest.raises(TimeoutError):
        await way(graph, "invoke", HELLO, config())
    graph = runtime.bind(chain({"node": node}), name="g")
    output = await way(graph, "invoke", None, config())
    assert outside.calls == ["a", "b", "b"]
    assert outside.keys[1] == outside.keys[2] != outside.keys[0]
    assert output["log"] == [{"receipt": 1, "what": "a"}, {"receipt": 3, "what": "b"}]


async def test_what_a_node_made_of_a_failure_is_replayed_in_the_same_run(runtime, way, outside):
    """The node caught the failure and went on from it: when it runs again it must see the same."""
    charge, seen = outside.charge(), []

    def node(_):
        try:
            charge("a")
        except (TimeoutError, OperationFailed) as error:
            seen.append(type(error).__name__)
        return {"log": [interrupt("it failed; go on?")]}

    outside.fails.append(TimeoutError("down"))
    graph = runtime.bind(chain({"node": node}), name="g")
    await way(graph, "invoke", HELLO, config())
    await way(graph, "invoke", resume("yes"), config())
    assert seen == ["TimeoutError", "OperationFailed"]
    assert outside.calls == ["a"]


async def test_the_first_call_and_the_later_ones_give_equal_values(runtime, way):
    seen = []

    @operation(name="fetch")
    def fetch():
        return {"tuple": (1, 2), "big": "x" * 50_000, "none": None}

    def node(_):
        seen.append(fetch())
        interrupt("?")

    graph = runtime.bind(chain({"node": node}), name="g")
    await way(graph, "invoke", HELLO, config())
    await way(graph, "invoke", resume(1), config())
    assert seen[0] == seen[1]
    assert seen[0] is not seen[1]


async def test_a_later_turn_of_the_thread_calls_again(runtime, way, outside):
    """The same node on another checkpoint is another call; a fork of an old one too."""
    charge = outside.charge()
    graph = runtime.bind(chain({"node": lambda _: {"log": [charge("a")["receipt"]]}}), name="g")
    await way(graph, "invoke", HELLO, config())
    output = await way(graph, "invoke", HELLO, config())
    assert output["log"] == [1, 2]
    history = await way.all(graph, "get_state_history", config())
    before = next(state for state in history if state.next == ("node",))
    await way(graph, "invoke", None, before.config)
    assert len(outside.calls) == 3
    assert len(set(outside.keys)) == 3


# --- identity ---------------------------------------------------------------------------------------------------------


async def test_calls_of_one_name_are_told_apart_by_position(runtime, way, outside, raw):
    charge, refund = outside.charge(), outside.charge("refund")
    graph = runtime.bind(
        chain({"a": lambda _: {"log": [charge(1), refund(1), charge(1)]}, "b": lambda _: {"log": [charge(1)]}}),
        name="g",
    )
    await way(graph, "invoke", HELLO, config())
    rows = raw.rows("SELECT name, ordinal FROM rp_operations ORDER BY created_us, name, ordinal")
    assert sorted((row["name"], row["ordinal"]) for row in rows) == [
        ("charge", "#0"),
        ("charge", "#0"),
        ("charge", "#1"),
        ("refund", "#0"),
    ]
    assert len(set(outside.keys)) == 4


async def test_a_key_of_ones_own_makes_order_irrelevant(runtime, way, outside):
    charge = outside.charge(key=lambda what, **_: f"order {what}")
    order = [1, 2, 3]

    def node(_):
        receipts = {what: charge(what)["receipt"] for what in order}
        order.reverse()
        interrupt("?")
        return {"log": [receipts]}

    graph = runtime.bind(chain({"node": node}), name="g")
    await way(graph, "invoke", HELLO, config())
    output = await way(graph, "invoke", resume(1), config())
    assert output["log"] == [{1: 1, 2: 2, 3: 3}]
    assert outside.calls == [1, 2, 3]


async def test_other_arguments_under_an_identity_are_refused_and_both_are_named(runtime, way, outside):
    charge, amounts = outside.charge(), iter([10, 20])

    def node(_):
        charge(next(amounts))
        interrupt("?")

    graph = runtime.bind(chain({"node": node}), name="g")
    await way(graph, "invoke", HELLO, config())
    with pytest.raises(OperationMismatch) as caught:
        await way(graph, "invoke", resume(1), config())
    assert "what=10" in str(caught.value)
    assert "what=20" in str(caught.value)
    assert outside.calls == [10]


# --- places -----------------------------------------------------------------------------------------------------------


async def test_inside_subgraphs_and_parallel_sends(runtime, way, outside):
    charge = outside.charge()

    def work(given):
        receipt = charge(given["item"])
        return {"log": [(given["item"], receipt["what"])]}

    inner = chain({"charges": lambda _: {"log": [charge("inner")["what"], interrupt("inner?")]}})
    graph = runtime.bind(nested(fanned(work)), name="sends")
    output = await way(graph, "invoke", {"log": [], "items": [3, 1, 2]}, config("sends"))
    assert sorted(outside.calls) == [1, 2, 3]
    assert [list(entry) for entry in output["log"][-5:-2]] == [[3, 3], [1, 1], [2, 2]]
    graph = runtime.bind(nested(inner), name="sub")
    await way(graph, "invoke", HELLO, config("sub"))
    output = await way(graph, "invoke", resume("yes"), config("sub"))
    assert output["log"][-3:] == ["inner", "yes", "after"]
    assert outside.calls[3:] == ["inner"]
    assert len(set(outside.keys)) == 4


async def test_inside_tasks_of_an_entrypoint(runtime, way, outside):
    charge = outside.charge()

    @task
    def pay(what):
        return charge(what)["what"]

    @entrypoint()
    def body(items):
        paid = [pay(item) for item in items]
        first = charge("body")["what"]
        return [first, *(future.result() for future in paid), interrupt("?")]

    graph = runtime.bind(body, name="entry")
    await way(graph, "invoke", [1, 2], config())
    assert await way(graph, "invoke", resume("ok"), config()) == ["body", 1, 2, "ok"]
    assert sorted(outside.calls, key=str) == [1, 2, "body"]


async def test_async_functions_are_journalled(runtime, outside):
    charge = outside.acharge()

    async def node(_):
        return {"log": [(await charge("a"))["receipt"], interrupt("?")]}

    graph = runtime.bind(chain({"node": node}), name="g")
    await graph.ainvoke(HELLO, config())
    output = await graph.ainvoke(resume("yes"), config())
    assert output["log"] == [1, "yes"]
    assert outside.calls == ["a"]


async def test_gathered_async_calls_with_keys_are_told_apart(runtime, outside):
    charge = outside.acharge(key=lambda what, **_: what)

    async def node(_):
        receipts = await asyncio.gather(*(charge(what) for what in "abc"))
        return {"log": [sorted(receipt["what"] for receipt in receipts), interrupt("?")]}

    graph = runtime.bind(chain({"node": node}), name="g")
    await graph.ainvoke(HELLO, config())
    output = await graph.ainvoke(resume("yes"), config())
    assert output["log"] == [["a", "b", "c"], "yes"]
    assert sorted(outside.calls) == ["a", "b", "c"]
