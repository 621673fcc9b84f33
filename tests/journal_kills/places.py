"""Where a journalled call can stand, how it is written, and the graphs of it."""

import asyncio
from collections.abc import Callable
from typing import Any

from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.func import entrypoint, task
from langgraph.graph import START, StateGraph

from runtime_persist import Budget, RetryPolicy, operation, step
from runtime_persist.adapters.middleware import Hook, JournalMiddleware, Patch, idempotency_key
from tests.journal_kills.outside import buy, receipt
from tests.middleware.agents import Scripted, agent, wants
from tests.support.graphs import chain, fanned

Call = Callable[[str], Any]
PLACES = ("node", "tool", "task", "send")
COUNTED = ("budgeted", "invoked")
"""The shapes whose calls take tickets."""
SHAPES = ("call", "flaky", "block", "hooked", "budgeted", "invoked")
"""A function; one whose first try the outside refuses; a block; a tool call of JournalMiddleware with a hook behind
it (which is one by its nature); a function whose run may make just as many calls as it has to; the same in a graph
inside the run, which is limited as an invocation too."""
AT_ONCE = RetryPolicy(max_attempts=9, backoff=0, jitter=0)
NAMED = {"send": ("1", "2")}
"""The orders of a place: two tasks buy at the same time, elsewhere it is one."""


def orders_of(place: str) -> tuple[str, ...]:
    return NAMED.get(place, ("a",))


def ends_with(place: str, shape: str) -> Any:
    """What a run's output is when nobody disturbed it."""
    receipts = [receipt(order) for order in orders_of(place)]
    if place == "tool":
        return [f"{receipts[0]}!" if shape == "hooked" else receipts[0], "done"]
    return receipts[0] if place == "task" else receipts


def shown(place: str, output: Any) -> Any:
    """An output without what each run makes anew."""
    if place == "tool":
        return [message.text for message in output["messages"]][2:]
    return output if place == "task" else output["log"]


def given(place: str) -> Any:
    """The input of a run."""
    if place == "tool":
        return {"messages": [{"role": "user", "content": "buy a"}]}
    return {"node": {"log": []}, "task": "a", "send": {"log": [], "items": ["1", "2"]}}[place]


# --- how a call is written -------------------------------------------------------------------------------------------


def _more(shape: str) -> dict[str, Any]:
    if shape in COUNTED:
        return {"ticket": "tool_call"}
    return {"retry": AT_ONCE} if shape == "flaky" else {}


def budget_of(place: str, shape: str) -> Budget | None:
    """What a run may take."""
    orders = len(orders_of(place))
    within = Budget(tool_calls=orders) if shape == "invoked" else None
    return Budget(tool_calls=orders, per_invocation=within) if shape in COUNTED else None


def buying(shape: str, port: int, policy: Any) -> Call:
    """A sync journalled call."""
    if shape == "block":

        def block(order: str) -> Any:
            with step("buy", {"order": order}, on_unknown=policy) as s:
                if not s.replayed:
                    s.provider_request_id = f"request {order}"
                    s.complete(buy(port, order, s.idempotency_key))
                return s.result

        return block

    @operation(name="buy", on_unknown=policy, **_more(shape))
    def call(order: str, *, idempotency_key: str) -> str:
        return buy(port, order, idempotency_key)

    return call


def abuying(shape: str, port: int, policy: Any) -> Call:
    """Its async twin."""
    if shape == "block":

        async def block(order: str) -> Any:
            async with step("buy", {"order": order}, on_unknown=policy) as s:
                if not s.replayed:
                    s.provider_request_id = f"request {order}"
                    await s.acomplete(await asyncio.to_thread(buy, port, order, s.idempotency_key))
                return s.result

        return block

    @operation(name="buy", on_unknown=policy, **_more(shape))
    async def call(order: str, *, idempotency_key: str) -> str:
        return await asyncio.to_thread(buy, port, order, idempotency_key)

    return call


# --- where it stands ------------------------------------------------------------------------------------------------


def graph(place: str, shape: str, port: int, policy: Any, *, asynchronous: bool) -> Any:
    """A graph that buys."""
    if shape == "hooked":
        return _agent(_hooked(port, asynchronous=asynchronous), JournalMiddleware(tools=policy, **_HOOKS))
    call = (abuying if asynchronous else buying)(shape, port, policy)
    made = (_AGRAPHS if asynchronous else _GRAPHS)[place](call)
    return _within(place, made, asynchronous=asynchronous) if shape == "invoked" else made


def _within(place: str, inner: Any, *, asynchronous: bool) -> Any:
    """A graph whose only node, or whose body, is the graph: an invocation inside the run."""
    if place != "task":
        around = StateGraph(inner.builder.state_schema).add_node("inner", inner).add_edge(START, "inner")
        return around.compile()
    if asynchronous:

        @entrypoint()
        async def outer(order: str) -> Any:
            return await inner.ainvoke(order)

        return outer

    @entrypoint()
    def around_body(order: str) -> Any:
        return inner.invoke(order)

    return around_body


def _node(call: Call) -> Any:
    return chain({"node": lambda _: {"log": [call("a")]}})


def _anode(call: Call) -> Any:
    async def node(_: Any) -> Any:
        return {"log": [await call("a")]}

    return chain({"node": node})


def _tool(call: Call) -> Any:
    @tool
    def pay(what: str) -> str:
        """Pay."""
        bought: str = call(what)
        return bought

    return _agent(pay)


def _atool(call: Call) -> Any:
    @tool
    async def pay(what: str) -> str:
        """Pay."""
        bought: str = await call(what)
        return bought

    return _agent(pay)


def _task(call: Call) -> Any:
    pay = task(call, name="pay")

    @entrypoint()
    def body(order: str) -> Any:
        return pay(order).result()

    return body


def _atask(call: Call) -> Any:
    @task
    async def pay(order: str) -> Any:
        return await call(order)

    @entrypoint()
    async def body(order: str) -> Any:
        return await pay(order)

    return body


def _send(call: Call) -> Any:
    return fanned(lambda given: {"log": [call(given["item"])]}, lambda _: {})


def _asend(call: Call) -> Any:
    async def work(given: Any) -> Any:
        return {"log": [await call(given["item"])]}

    return fanned(work, lambda _: {})


_GRAPHS = {"node": _node, "tool": _tool, "task": _task, "send": _send}
_AGRAPHS = {"node": _anode, "tool": _atool, "task": _atask, "send": _asend}
_SCRIPT = (wants(("pay", {"what": "a"}, "call-a")), AIMessage(content="done"))
_HOOKS = {"response_hooks": [Hook("exclaim", lambda call: Patch(f"{call.response.text}!"), on="tool")]}


def _agent(pay: Any, *middleware: Any) -> Any:
    return agent([pay], *middleware, model=Scripted(script=_SCRIPT))


def _hooked(port: int, *, asynchronous: bool) -> Any:
    """A tool that JournalMiddleware journals: there is no operation of its own in it."""
    if asynchronous:

        @tool("pay")
        async def apay(what: str) -> str:
            """Pay."""
            return await asyncio.to_thread(buy, port, what, idempotency_key())

        return apay

    @tool
    def pay(what: str) -> str:
        """Pay."""
        return buy(port, what, idempotency_key())

    return pay
