"""What a graph leaves behind here is what it leaves behind in LangGraph's InMemorySaver, whatever way it is run.

Graphs × calls × durabilities × databases × with and without owned runs; `make test` runs a part of it in which every
pair of two of these occurs, `make test-all` all of it.
"""

import functools
import itertools

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from tests.equality.conftest import DATABASES
from tests.equality.history import Told, differences
from tests.equality.stories import STORIES, Teller
from tests.support.way import ASYNC, SYNC

CALLS = {
    f"{'a' if way is ASYNC else ''}{call}": (way, call)
    for call in ("invoke", "stream", "batch")
    for way in (SYNC, ASYNC)
}
DURABILITIES = ("sync", "async", "exit")
LEVELS = ("saver", "owned")
AXES = (tuple(STORIES), tuple(CALLS), DURABILITIES, DATABASES, LEVELS)
PRODUCT = list(itertools.product(*AXES))


def pairs(case):
    return frozenset(itertools.combinations(enumerate(case), 2))


def pairwise(product):
    """A part of a product in which every pair occurs: always the case that brings the most new ones."""
    missing = frozenset().union(*map(pairs, product))
    chosen = []
    while missing:
        best = max(product, key=lambda case: len(pairs(case) & missing))
        chosen.append(best)
        missing -= pairs(best)
    return chosen


def cases():
    default = set(pairwise(PRODUCT))
    for case in PRODUCT:
        yield pytest.param(
            *case, CALLS[case[1]][0], id="-".join(case), marks=() if case in default else pytest.mark.exhaustive
        )


async def everything(way, story, call, durability, name, make, saver):
    """Tell a story to the graph that ``make`` gives; return what came of each step, and what is stored."""
    told = Teller(way, CALLS[call][1], durability, name)
    told.options = STORIES[story].options
    told.graph = make(told)
    await STORIES[story].tell(told)
    found = []
    for thread_id in told.threads:
        thread = Told(way, told.graph, saver, thread_id)
        stored = await thread.history()
        thread.places.counts = False
        outputs = [thread.places.plain(output) for whose, output in told.told if whose == thread_id]
        # Parallel tasks end in any order, and a stream tells it.
        found.append(
            {
                "stored": stored,
                "outputs": [sorted(map(repr, one)) if call.endswith("stream") else one for one in outputs],
            }
        )
    return found


IN_MEMORY = {}


async def in_memory(way, *case):
    """What LangGraph's own saver has; the same for each database."""
    if case not in IN_MEMORY:
        saver = InMemorySaver()
        make = functools.partial(STORIES[case[0]].make, checkpointer=saver)
        IN_MEMORY[case] = await everything(way, *case, "t", make, saver)
    return IN_MEMORY[case]


@pytest.mark.parametrize(("story", "call", "durability", "database", "level", "way"), list(cases()))
async def test_the_history_is_that_of_the_memory_saver(shared_runtime, story, call, durability, database, level, way):
    runtime = shared_runtime(database)
    name = f"{story}-{call}-{durability}-{level}"
    make = STORIES[story].make
    ours = await everything(
        way, story, call, durability, name,
        functools.partial(make, checkpointer=runtime.checkpointer) if level == "saver"
        else lambda told: runtime.bind(make(told), name="g"),
        runtime.checkpointer,
    )  # fmt: skip
    theirs = await in_memory(way, story, call, durability)
    assert differences(ours, theirs)[:3] == []


class NoParent(InMemorySaver):
    def put(self, config, *rest):
        config = {"configurable": {**config["configurable"], "checkpoint_id": None}}
        return super().put(config, *rest)


class NoErrors(InMemorySaver):
    def put_writes(self, config, writes, *rest):
        super().put_writes(config, [write for write in writes if write[0] != "__error__"], *rest)


class OtherSteps(InMemorySaver):
    def put(self, config, checkpoint, metadata, versions):
        return super().put(config, checkpoint, {**metadata, "step": metadata["step"] + 1}, versions)


class LastWriteOnly(InMemorySaver):
    def put_writes(self, config, writes, *rest):
        super().put_writes(config, list(writes)[-1:], *rest)


@pytest.mark.parametrize("broken", [NoParent, NoErrors, OtherSteps, LastWriteOnly])
def test_the_history_of_a_saver_that_loses_something_is_another_one(broken):
    case = ("error then resume", "invoke", "sync")
    saver = broken()
    make = functools.partial(STORIES[case[0]].make, checkpointer=saver)
    assert differences(SYNC.run(everything(SYNC, *case, "t", make, saver)), SYNC.run(in_memory(SYNC, *case))) != []
