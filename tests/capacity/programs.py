"""What the processes of this suite run: claimers that never execute anything."""

import random
import time
from typing import Any

from runtime_persist import Runtime
from runtime_persist.engine import run, settling
from runtime_persist.worker.capacity import Instance
from runtime_persist.worker.claiming import Claimer
from runtime_persist.worker.registry import Served, serve
from tests.support.graphs import chain, says
from tests.support.processes import Word


def claimer(runtime: Runtime, graphs: list[str], slots: int) -> tuple[Claimer, Instance]:
    graph = chain({"node": says("x")})
    served: dict[str, Served] = {name: serve(name, graph) for name in graphs}
    instance = Instance(runtime.engine, slots, {name: one.versions for name, one in served.items()})
    instance.keep_reported(())
    return Claimer(runtime, served, instance), instance


def claims(word: Word, url: str, graphs: list[str], times: int) -> list[tuple[str, int, int]]:
    """Claim, at the word, and return what was claimed: graph, and when the claim began and ended."""
    with Runtime.open(url) as runtime:
        one, _ = claimer(runtime, graphs, slots=1_000)
        word.say("ready")
        word.wait()
        found = []
        while len(found) < times:
            began = time.monotonic_ns()
            taken = one.claim()
            if taken is not None:
                found.append((taken[1]["graph"], began, time.monotonic_ns()))
        return found


def churns(word: Word, url: str, graphs: list[str], slots: int, seed: int) -> int:
    """Claim as much as there is room for and end it again, until nothing is left; return how many were claimed."""
    chance, count, held = random.Random(seed), 0, []
    with Runtime.open(url) as runtime:
        one, _ = claimer(runtime, graphs, slots)
        word.say("ready")
        word.wait()
        while True:
            taken: Any = one.claim()
            if taken is not None:
                held.append(taken[0])
                count += 1
            if held and (taken is None or chance.random() < 0.5):
                run(settling.fail(runtime.engine, held.pop(0), "ended", "the test ends it"))
            elif taken is None and not any(one.status in _OPEN for one in runtime.runs.list(limit=1_000)):
                return count


_OPEN = {"queued", "dispatching", "running", "lost"}
