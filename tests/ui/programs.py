"""A process that is killed in the middle of a payment."""

from typing import Any

from runtime_persist import Runtime, operation
from tests.support.graphs import asks, chain, config, says
from tests.support.processes import Word


def shop(reached: Any = lambda: None) -> Any:
    """A graph that pays, and then asks a person."""

    @operation(name="charge", on_unknown="ask")
    def charge(order: str) -> dict[str, str]:
        reached()
        return {"order": order}

    return chain({"greet": says("hello"), "pay": lambda _: {"log": [charge("order-7")]}, "ask": asks("send it?")})


def payer(word: Word, url: str, thread_id: str) -> None:
    """Begin to pay, and wait to be killed."""

    def reached() -> None:
        word.say("there")
        word.wait()

    with Runtime.open(url) as runtime:
        runtime.bind(shop(reached), name="shop").invoke({"log": []}, config(thread_id), durability="sync")
