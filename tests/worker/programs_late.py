"""What processes run whose answers come late: the command is committed, and they hear of it when the test says so."""

from typing import Any

from runtime_persist import Runtime
from runtime_persist.engine import Engine
from runtime_persist.errors import RuntimePersistError
from runtime_persist.worker import Worker
from tests.support.graphs import chain, config
from tests.support.processes import Word


def _late(word: Word, url: str, name: str, lease_ttl: float) -> Runtime:
    """A runtime that waits for the word when command ``name`` is committed for the first time."""
    cuts = [f"{name}:after:commit"]

    def hook(cut: str) -> None:
        if cut in cuts:
            cuts.clear()
            word.say("committed")
            word.wait()

    return Runtime(Engine(url, auto_setup=False, lease_ttl=lease_ttl, hook=hook), None)


def _graph(word: Word, name: str) -> Any:
    def node(_: Any) -> Any:
        word.say("in node", name)
        return {"log": [name]}

    return chain({"node": node, "after": lambda _: {"log": ["after"]}})


def works(word: Word, url: str, name: str, lease_ttl: float) -> list[Any]:
    """Work on graph ``g`` until one run is finished or left to others; return what is reported, and what ran."""
    reports: list[Any] = []
    with _late(word, url, "claim_next", lease_ttl) as runtime:

        def report(what: str, facts: Any) -> None:
            reports.append((what, facts.get("code")))
            if what != "claimed":
                working.stop()

        working = Worker(runtime, {"g": _graph(word, name)}, poll_seconds=0.02, report=report)
        working.run()
    return reports


def invokes(word: Word, url: str, name: str, lease_ttl: float) -> Any:
    """Call graph ``g`` itself; return what that comes to."""
    with _late(word, url, "start_owned_run", lease_ttl) as runtime:
        graph = runtime.bind(_graph(word, name), name="g")
        try:
            return graph.invoke({"log": []}, config())["log"]
        except RuntimePersistError as error:
            return error.code
