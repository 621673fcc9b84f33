"""A process that charges a card through the journal and stops at a point, to be killed there; and one that goes on."""

import json
import urllib.request
from typing import Any

from runtime_persist import DidNotHappen, Happened, RetryPolicy, Runtime, operation
from runtime_persist.errors import RuntimePersistError
from tests.support.graphs import chain, config
from tests.support.processes import Word

POINTS = ("before the start", "before it is sent", "before the result", "behind the result", "between two tries")
"""Where :func:`payer` stops: before its operation has begun, before the outside hears of it, after the outside did it,
behind the stored result, and when a try has failed and the next one is due in an hour."""
HOUR = RetryPolicy(max_attempts=3, backoff=3_600, backoff_max=3_600, jitter=0)
RETRY = {"between two tries": HOUR}


class Card:
    """The card processor, as its client sees it."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"

    def charge(self, cents: int, key: str) -> Any:
        headers = {"Idempotency-Key": key, "Content-Type": "application/json"}
        body = json.dumps({"cents": cents}).encode()
        request = urllib.request.Request(self.url, body, headers)  # noqa: S310 (loopback)
        with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310 (loopback)
            return json.load(answer)

    def found(self, key: str) -> Any:
        """What it knows of a key."""
        with urllib.request.urlopen(self.url, timeout=30) as answer:  # noqa: S310 (loopback)
            return json.load(answer)["charges"].get(key)


def shop(word: Word, card: Card, policy: str, stops_at: str | None) -> Any:
    """A graph whose node pays once."""

    def reached(point: str) -> None:
        if point == stops_at:
            word.say("there")
            word.wait()

    def ask(_request: Any, key: str, _tries: Any) -> Any:
        found = card.found(key)
        return DidNotHappen() if found is None else Happened(found)

    said: Any = ask if policy == "a function" else policy
    retry = HOUR if stops_at == "between two tries" else None

    @operation(name="charge", on_unknown=said, retry=retry)
    def charge(cents: int, *, idempotency_key: str) -> Any:
        if stops_at == "between two tries":
            raise ConnectionError("the line is cut")
        reached("before it is sent")
        charged = card.charge(cents, idempotency_key)
        reached("before the result")
        return charged

    def pay(_: Any) -> Any:
        reached("before the start")
        charged = charge(4200)
        reached("behind the result")
        return {"log": [charged["charge_id"]]}

    return chain({"pay": pay})


def payer(word: Word, url: str, port: int, policy: str, stops_at: str) -> None:
    """Pay, and stop at a point."""
    with Runtime.open(url) as runtime:
        graph = runtime.bind(shop(word, Card(port), policy, stops_at), name="shop")
        graph.invoke({"log": []}, config(), durability="sync")


def recoverer(word: Word, url: str, port: int, policy: str) -> Any:
    """Go on with what a payer left; return what the graph gave, or the code of the error."""
    with Runtime.open(url) as runtime:
        graph = runtime.bind(shop(word, Card(port), policy, None), name="shop")
        try:
            return graph.invoke(None, config(), durability="sync")["log"]
        except RuntimePersistError as error:
            return error.code
