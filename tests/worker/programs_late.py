"""What processes run whose answers come late: the command is committed, and they hear of it when the test says so."""

from typing import Any

from runtime_persist import Runtime
from runtime_persist.engine import Engine
from runtime_persist.errors import RuntimePersistError
from runtime_persist.model import limits
from runtime_persist.worker import Worker
from tests.support.graphs import chain, config
from tests.support.processes import Word


def _late(word: Word, url: str, cut: str, lease_ttl: float) -> Runtime:
    """A runtime that waits for the word when it is at a cut for the first time."""
    cuts = [cut]

    def hook(reached: str) -> None:
        if reached in cuts:
            cuts.clear()
            word.say("committed" if cut.endswith(":commit") else "inside")
            word.wait()

    return Runtime(Engine(url, auto_setup=False, lease_ttl=lease_ttl, hook=hook), None)


def _graph(word: Word, name: str) -> Any:
    def node(_: Any) -> Any:
        word.say("in node", name)
        return {"log": [name]}

    return chain({"node": node, "after": lambda _: {"log": ["after"]}})


def works(word: Word, url: str, name: str, lease_ttl: float, cut: str = "claim_next:after:commit") -> list[Any]:
    """Work on graph ``g`` until one run is finished or left to others; return what is reported."""
    reports: list[Any] = []
    with _late(word, url, cut, lease_ttl) as runtime:

        def report(what: str, facts: Any) -> None:
            reports.append((what, facts.get("code")))
            if what != "claimed":
                working.stop()

        working = Worker(runtime, {"g": _graph(word, name)}, poll_seconds=0.02, report=report)
        working.run()
    return reports


def is_stopped_in_its_claim(word: Word, url: str) -> list[Any]:
    """Work on graph ``g``, and fall silent in the transaction of the first claim: it has the run and the graph locked.

    The server lets a silent transaction go on for a second.
    """
    limits.IDLE_TRANSACTION_SECONDS = 1.0  # type: ignore[misc]
    return works(word, url, "first", limits.LEASE_TTL_SECONDS, "claim_next:before:save_run")


def invokes(word: Word, url: str, name: str, lease_ttl: float, *, goes_on: bool = False) -> Any:
    """Call graph ``g`` itself, or go on with the run that was left; return what that comes to."""
    cut = "continue_owned_run:after:commit" if goes_on else "start_owned_run:after:commit"
    with _late(word, url, cut, lease_ttl) as runtime:
        graph = runtime.bind(_graph(word, name), name="g")
        try:
            return graph.invoke(None if goes_on else {"log": []}, config())["log"]
        except RuntimePersistError as error:
            return error.code
