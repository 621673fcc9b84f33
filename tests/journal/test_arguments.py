"""What of a call is compared and shown (no object, secrets as keyed hashes), and which call is which."""

import asyncio
import contextvars
from concurrent.futures import ThreadPoolExecutor

import pytest
from langgraph.errors import GraphBubbleUp
from langgraph.types import interrupt
from pydantic import BaseModel, SecretStr

from runtime_persist import operation
from runtime_persist.engine import run
from runtime_persist.errors import InvalidInput, OperationMismatch, OperationOrder
from runtime_persist.inspector.bundle import load_bundle
from tests.support.graphs import chain, config, resume
from tests.support.journal import Outside

HELLO = {"log": []}
CARD, TOKEN = "4111111111111111", "tok-123456789"


@pytest.fixture
def outside():
    return Outside()


# --- methods ----------------------------------------------------------------------------------------------------------


class Client:
    """A client of the outside, which no serializer can store."""

    def __init__(self, outside) -> None:
        self.outside = outside
        self.lock = contextvars.ContextVar("unstorable")

    @operation(name="charge", key=lambda what, **_: f"order {what}")
    def charge(self, what, *, idempotency_key):
        return self.outside.call(what, idempotency_key)["what"]

    @operation(name="acharge")
    async def acharge(self, what, *, idempotency_key):
        return self.outside.call(what, idempotency_key)["what"]

    @classmethod
    @operation(name="version")
    def version(cls, minor) -> str:
        return f"{cls.__name__} {minor}"

    @staticmethod
    @operation(name="plain")
    def plain(what) -> str:
        return what


class Tenant(BaseModel):
    """A bound object that is part of what is asked for."""

    name: str

    @operation(name="report", include_self=True)
    def report(self, day):
        return f"{self.name} {day}"


async def test_the_object_of_a_method_is_no_argument(runtime, way, outside, raw):
    def node(_):
        one = Client(outside)  # another object each time the node runs
        return {"log": [one.charge("a"), one.version(3), Client.version(4), one.plain("x"), interrupt("?")]}

    graph = runtime.bind(chain({"node": node}), name="g")
    await way(graph, "invoke", HELLO, config())
    output = await way(graph, "invoke", resume("yes"), config())
    assert output["log"] == ["a", "Client 3", "Client 4", "x", "yes"]
    assert outside.calls == ["a"]
    requests = {row["ordinal"]: row["request"] for row in raw.rows("SELECT * FROM rp_operations")}
    assert requests["order a"] == "what='a'"


async def test_an_async_method_is_journalled_too(runtime, outside):
    async def node(_):
        return {"log": [await Client(outside).acharge("a"), interrupt("?")]}

    graph = runtime.bind(chain({"node": node}), name="g")
    await graph.ainvoke(HELLO, config())
    assert (await graph.ainvoke(resume("yes"), config()))["log"] == ["a", "yes"]
    assert outside.calls == ["a"]


def test_the_object_is_an_argument_when_that_is_asked_for(runtime, raw):
    graph = runtime.bind(chain({"node": lambda _: {"log": [Tenant(name="acme").report("monday")]}}), name="g")
    graph.invoke(HELLO, config())
    assert "acme" in raw.value("SELECT request FROM rp_operations")


# --- secrets ----------------------------------------------------------------------------------------------------------


class Payment(BaseModel):
    token: SecretStr
    cents: int


@operation(name="charge", redact={"card"})
def charge(card, payment, note="", *, idempotency_key):
    if note:
        raise ValueError(f"{card} was refused with {payment.token.get_secret_value()}: {note}")
    return "charged"


def paying(cards):
    def node(_):
        charge(next(cards), Payment(token=TOKEN, cents=5))
        interrupt("?")

    return chain({"node": node})


def test_hidden_arguments_are_nowhere_in_clear(runtime, raw):
    graph = runtime.bind(paying(iter([CARD])), name="g")
    graph.invoke(HELLO, config())
    request = raw.value("SELECT request FROM rp_operations")
    assert "hidden:" in request
    assert "'cents': 5" in request
    dump = repr(raw.dump())
    assert CARD not in dump
    assert TOKEN not in dump
    (found,) = runtime.runs.list()
    bundle = run(load_bundle(runtime.engine, runtime.checkpointer.serde, found.run_id)).model_dump_json()
    assert CARD not in bundle
    assert TOKEN not in bundle


def test_hidden_arguments_are_still_compared(runtime):
    graph = runtime.bind(paying(iter([CARD, CARD, "5500000000000004"])), name="g")
    graph.invoke(HELLO, config())
    graph.invoke(resume(1), config())
    graph = runtime.bind(paying(iter([CARD, "5500000000000004"])), name="g")
    graph.invoke(HELLO, config("other"))
    with pytest.raises(OperationMismatch) as caught:
        graph.invoke(resume(1), config("other"))
    assert CARD not in str(caught.value)


def test_what_an_error_says_of_a_hidden_argument_is_taken_out(runtime, raw):
    def node(_):
        try:
            charge(CARD, Payment(token=TOKEN, cents=5), note="no funds")
        except ValueError:
            return {"log": ["refused"]}

    graph = runtime.bind(chain({"node": node}), name="g")
    graph.invoke(HELLO, config())
    assert raw.value("SELECT error_text FROM rp_operations") == "[hidden] was refused with [hidden]: no funds"
    assert CARD not in repr(raw.dump())


def test_two_spaces_hide_the_same_value_differently(open_runtime, raw_of):
    requests = set()
    for space in ("one", "two"):
        runtime = open_runtime(space=space)
        runtime.bind(paying(iter([CARD])), name="g").invoke(HELLO, config())
        requests |= {row["request"] for row in raw_of(runtime).rows("SELECT request FROM rp_operations")}
    assert len(requests) == 2


def test_an_argument_that_there_is_not_cannot_be_redacted():
    with pytest.raises(InvalidInput, match="crad"):
        operation(name="charge", redact={"crad"})(lambda card: card)
    operation(name="charge", redact={"card"})(lambda **anything: anything)


# --- order ------------------------------------------------------------------------------------------------------------


async def test_calls_at_the_same_time_without_a_key_are_refused(runtime, raw):
    started, asked_for = asyncio.Event(), []

    @operation(name="fetch")
    async def fetch(what):
        asked_for.append(what)
        started.set()
        await asyncio.sleep(0)
        return what

    async def node(_):
        first = asyncio.ensure_future(fetch("a"))
        await started.wait()
        try:
            await fetch("b")
        finally:
            await first

    graph = runtime.bind(chain({"node": node}), name="g")
    with pytest.raises(OperationOrder, match="key=") as caught:
        await graph.ainvoke(HELLO, config())
    assert isinstance(caught.value, GraphBubbleUp)
    assert asked_for == ["a"]


def test_calls_of_several_threads_without_a_key_are_refused(runtime, raw):
    refused = []

    def node(_):
        with ThreadPoolExecutor(1) as pool:
            other = contextvars.copy_context()

            @operation(name="outer")
            def outer():
                return pool.submit(other.run, again).result()

            def again():
                try:
                    return outer()
                except OperationOrder as error:
                    refused.append(error)
                    return "refused"

            return {"log": [outer()]}

    graph = runtime.bind(chain({"node": node}), name="g")
    assert graph.invoke(HELLO, config())["log"] == ["refused"]
    assert len(refused) == 1


def test_calls_one_behind_the_other_need_no_key_also_after_one_that_failed(runtime, outside):
    outside.fails.append(ValueError("no"))
    fetch = outside.charge()

    def node(_):
        found = []
        for what in "abc":
            try:
                found.append(fetch(what)["what"])
            except ValueError:
                found.append("failed")
        return {"log": found}

    graph = runtime.bind(chain({"node": node}), name="g")
    assert graph.invoke(HELLO, config())["log"] == ["failed", "b", "c"]


def test_calls_inside_a_call_are_counted_there(runtime, way, outside, raw):
    """When the outer one is replayed its inner ones are not made: what is called behind it keeps its position."""
    inner = outside.charge("inner")

    @operation(name="outer")
    def outer():
        return inner("inside")["what"]

    def node(_):
        return {"log": [outer(), inner("behind")["what"], interrupt("?")]}

    graph = runtime.bind(chain({"node": node}), name="g")
    graph.invoke(HELLO, config())
    assert graph.invoke(resume("yes"), config())["log"] == ["inside", "behind", "yes"]
    assert outside.calls == ["inside", "behind"]
    ordinals = {(row["name"], row["ordinal"]) for row in raw.rows("SELECT * FROM rp_operations")}
    assert ordinals == {("outer", "#0"), ("inner", "outer#0>#0"), ("inner", "#0")}
