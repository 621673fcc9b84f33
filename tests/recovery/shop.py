"""A shop whose workers die in a call, or leave tasks that failed once; also what ``--app`` names."""

from collections.abc import Callable
from typing import Any

from runtime_persist import Runtime, operation
from runtime_persist.worker import Worker
from tests.support.graphs import chain, fanned, says
from tests.support.processes import Word

GATES: list[Callable[[], None]] = []
"""What calls of this process go through before they return."""
CHARGED: list[str] = []
ONCE: list[str] = []
"""What fails in this process, once each."""


@operation(name="charge", on_unknown="ask", ticket="tool_call")
def charge(order: str) -> str:
    """Charge an order."""
    CHARGED.append(order)
    for gate in GATES:
        gate()
    return f"charged {order}"


def work(given: Any) -> dict[str, Any]:
    """Work on an item, of which some fail once."""
    item = str(given["item"])
    CHARGED.append(item)
    if item in ONCE:
        ONCE.remove(item)
        raise ValueError(item)
    return {"log": [item]}


registry = {
    "shop": chain({"first": says("first"), "pay": lambda _: {"log": [charge("7")]}, "after": says("after")}),
    "many": fanned(work),
}


def dies_in_call(word: Word, url: str) -> None:
    """Work on what is queued, and wait in the first call for the end."""

    def gate() -> None:
        word.say("in call")
        word.wait()

    GATES.append(gate)
    with Runtime.open(url) as runtime:
        Worker(runtime, registry).run(until_idle=True)
