"""What is told to a graph, step by step: each story is a graph and a script, the same for every saver."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from langgraph.errors import GraphRecursionError
from langgraph.func import entrypoint, task
from langgraph.graph import END
from langgraph.types import Command, StateUpdate, interrupt

from tests.support.deltas import Both, both, delta_chain, echoes
from tests.support.graphs import asks, chain, config, fanned, nested, resume, says

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.support.way import Way

MODES = ["values", "updates", "tasks", "checkpoints"]
EXPECTED = (ValueError, GraphRecursionError, AttributeError, RuntimeError)
"""What a script runs into: its own errors, the recursion limit, and what LangGraph itself does not do."""


class Teller:
    """Tells a script to one graph, through one of its methods, and keeps what came of each step.

    ``batch`` tells it to two threads at once, everything else to one.
    """

    def __init__(self, way: Way, call: str, durability: str, name: str) -> None:
        self.way, self.call, self.durability = way, call, durability
        self.threads = [f"{name}/1", f"{name}/2"] if call == "batch" else [name]
        self.graph: Any = None
        self.failing = True
        self.options: dict[str, Any] = {}
        self.told: list[tuple[str, Any]] = []

    async def run(self, given: Any, places: list[Any] | None = None, **options: Any) -> None:
        """Run the graph: on its threads, or at the places of each; ``given`` may differ by thread."""
        places = [{**place, **self.options} for place in places or [config(thread) for thread in self.threads]]
        inputs = given if isinstance(given, list) else [given] * len(places)
        options |= {"durability": self.durability}
        if self.call == "batch":
            told = await self.way(self.graph, "batch", inputs, places, return_exceptions=True, **options)
        else:
            told = [await self._one(inputs[0], places[0], options)]
        self.told += zip(self.threads, told, strict=True)

    async def _one(self, given: Any, place: Any, options: dict[str, Any]) -> Any:
        try:
            if self.call == "stream":
                # With these LangGraph itself waits on one of the threads that tasks run on: it needs a second one.
                more = [] if "max_concurrency" in place else ["custom"]
                options |= {"stream_mode": MODES + more, "subgraphs": bool(more)}
                return await self.way.all(self.graph, "stream", given, place, **options)
            return await self.way(self.graph, "invoke", given, place, **options)
        except EXPECTED as error:
            return error

    async def states(self, **options: Any) -> list[Any]:
        """Return the state of each thread."""
        return [await self.way(self.graph, "get_state", config(thread), **options) for thread in self.threads]

    async def at(self, n: int) -> list[Any]:
        """Return the places of the n-th checkpoint, oldest first."""
        found = []
        for thread in self.threads:
            states = await self.way.all(self.graph, "get_state_history", config(thread))
            found.append(states[max(-1 - n, -len(states))].config)
        return found

    async def edit(self, values: Any, as_node: str | None = None, places: list[Any] | None = None) -> list[Any]:
        """Do update_state on each thread; return where it led."""
        places = places or [config(thread) for thread in self.threads]
        return [await self.way(self.graph, "update_state", place, values, as_node=as_node) for place in places]

    async def edit_many(self, *supersteps: list[StateUpdate], places: list[Any] | None = None) -> list[Any]:
        """Do bulk_update_state on each thread; return where it led."""
        places = places or [config(thread) for thread in self.threads]
        return [await self.way(self.graph, "bulk_update_state", place, list(supersteps)) for place in places]


class Story(NamedTuple):
    """A graph and what is told to it. ``options`` go into the config of every run."""

    make: Callable[..., Any]
    tell: Callable[[Teller], Awaitable[None]]
    options: dict[str, Any] = {}  # noqa: RUF012 (read only)


ONE_AT_A_TIME = {"max_concurrency": 1}
"""Which siblings of a failed task still finish is a race inside LangGraph."""


# --- scripts --------------------------------------------------------------------------------------------------------


async def two_turns(story):
    await story.run({"log": ["hello"], "items": [3, 2, 1]})
    await story.run({"log": ["again"], "items": [1, 2]})


async def fails_then_goes_on(story):
    await story.run({"log": [], "items": [3, 2, 1]})
    story.failing = False
    await story.run(None)
    await story.run({"log": ["again"], "items": [1]})


async def asked(story):
    await story.run({"log": []})
    await story.run(resume("because"))
    await story.run({"log": ["next turn"]})
    await story.run({"log": ["dropped the question"]})
    await story.run(resume("at last"))


async def asked_by_many(story):
    """Answers go to the interrupts they name: first two of three, then the last."""
    await story.run({"log": [], "items": [3, 2, 1]})
    for how_many in (2, 1):
        states = await story.states()
        chosen = [sorted(state.interrupts, key=lambda found: found.value)[:how_many] for state in states]
        await story.run([resume({found.id: f"answer to {found.value}" for found in few}) for few in chosen])


async def forked(story):
    await story.run({"log": ["first"]})
    await story.run({"log": ["second"]})
    old = await story.at(2)
    await story.run(None, old)
    await story.run(None, await story.edit({"log": ["edited"]}, places=old))
    await story.run({"log": ["third"]}, old)
    await story.run({"log": ["fourth"]})


async def forked_at_a_question(story):
    await story.run({"log": []})
    old = [state.config for state in await story.states()]
    await story.run(resume("one"))
    await story.run(resume("two"), old)
    await story.run(None, old)
    await story.run(resume("three"))


async def deltas(story):
    await story.run(both("i1"))
    await story.run(both("i2"))
    old = await story.at(3)
    await story.run(both("i3"), old)
    await story.edit(both("edited"))
    await story.run(None, await story.edit(both("edited an old one"), places=old))
    await story.run(both("i4"))


async def edited(story):
    await story.edit({"log": ["input"]}, "__input__")
    await story.run(None)
    await story.edit({"log": ["as a"]}, "a")
    await story.edit_many(
        [StateUpdate({"log": ["a1"]}, "a"), StateUpdate({"log": ["b1"]}, "b")],
        [StateUpdate({"log": ["a2"]}, "a")],
    )
    await story.run(None)
    old = await story.at(1)
    await story.edit(None, END, old)
    await story.edit(None, "__copy__", old)
    await story.edit_many([StateUpdate([({"log": ["copied"]}, "a")], "__copy__")], places=old)
    await story.run({"log": ["more"]})


async def edited_inside(story):
    """A person edits the state of a waiting subgraph, and answers."""
    await story.run({"log": []})
    inner = [state.tasks[0].state.config for state in await story.states(subgraphs=True) if state.tasks[0].state]
    if inner:
        await story.edit({"log": ["edited inside"]}, "x", inner)
        await story.run(resume("because"))
    await story.run({"log": ["again"]})


async def commanded(story):
    await story.run({"log": []}, interrupt_before=["b"])
    await story.run(Command(update={"log": ["updated"]}, goto="c"))
    await story.run(None, interrupt_after=["b"])
    await story.run(None)


async def counted(story):
    await story.run(3)
    story.failing = False
    await story.run(None)
    await story.run(2)


async def approved(story):
    await story.run(3)
    await story.run(resume("yes"))
    await story.run(2)
    await story.run(resume("no"))


# --- graphs ---------------------------------------------------------------------------------------------------------


def sends(story, **options):
    return fanned(lambda given: {"log": [given["item"]], "n": 1}, **options)


def unlucky_sends(story, **options):
    def work(given):
        if story.failing and given["item"] == 1:  # the last one: what the others still do after a failure is a race
            msg = "unlucky"
            raise ValueError(msg)
        return {"log": [given["item"]]}

    return fanned(work, **options)


def asking_sends(story, **options):
    return fanned(lambda given: {"log": [interrupt(given["item"])]}, **options)


def asking_subgraphs(story, **options):
    """Each Send runs a subgraph of its own."""
    inner = chain({"y": lambda given: {"n": 1}, "ask": lambda given: {"log": [interrupt(given["items"][0])]}})
    return fanned(lambda given: {"log": inner.invoke({"log": [], "items": [given["item"]]})["log"]}, **options)


def questions(story, **options):
    return chain({"a": says("a"), "ask": asks("why?"), "b": says("b")}, **options)


def failing_once(story, **options):
    def node(state):
        if story.failing:
            msg = "not yet"
            raise ValueError(msg)
        return {"log": ["worked"]}

    return chain({"a": says("a"), "b": node, "c": says("c")}, **options)


def with_subgraph(persistence, **nodes):
    nodes = nodes or {"x": says("x"), "ask": asks("q"), "y": says("y")}
    return lambda story, **options: nested(chain(nodes, checkpointer=persistence), **options)


def in_two_levels(story, **options):
    innermost = chain({"x": says("x"), "ask": asks("deep")}, checkpointer=True)
    return nested(nested(innermost), **options)


def calling_twice(story, **options):
    inner = chain({"x": says("x"), "y": says("y")})

    def node(state):
        first = inner.invoke({"log": ["first"]})
        return {"log": [len(first["log"]), *inner.invoke({"log": ["second"]})["log"]]}

    return chain({"a": says("a"), "calls": node}, **options)


def letters(story, **options):
    return chain({name: says(name) for name in "abc"}, **options)


def delta_subgraph(story, **options):
    return delta_chain(Both, echoes, delta_chain(checkpointer=True), lambda _: both("out"), **options)


def tasks(story, **options):
    """Tasks in parallel, and behind them one that fails at first."""

    @task
    def double(n):
        return 2 * n

    @task
    def halve(n):
        if story.failing:
            msg = "not yet"
            raise ValueError(msg)
        return n // 2

    @entrypoint(**options)
    def flow(n: int, *, previous: int | None = None) -> entrypoint.final[int, int]:
        parts = [double(one) for one in range(n)]
        total = halve(sum(part.result() for part in parts)).result() + (previous or 0)
        return entrypoint.final(value=total, save=total + 1)

    return flow


def approving_tasks(story, **options):
    @task
    def double(n):
        return 2 * n

    @task
    def ask(n):
        return interrupt(f"is {n} right?")

    @entrypoint(**options)
    def flow(n: int) -> str:
        return f"{double(n).result()} {ask(double(n).result()).result()} {interrupt('sure?') if n > 2 else ''}"

    return flow


STORIES = {
    "sends": Story(sends, two_turns),
    "sends, one fails, resumed": Story(unlucky_sends, fails_then_goes_on, ONE_AT_A_TIME),
    "sends that ask": Story(asking_sends, asked_by_many),
    "sends of subgraphs that ask": Story(asking_subgraphs, asked_by_many),
    "interrupt and resume": Story(questions, asked),
    "stateless subgraph": Story(with_subgraph(None), asked),
    "stateful subgraph": Story(with_subgraph(True), asked),
    "subgraph that stores nothing": Story(with_subgraph(False, x=says("x")), two_turns),
    "subgraphs in two levels": Story(in_two_levels, asked),
    "subgraph edited while it waits": Story(with_subgraph(None), edited_inside),
    "stateful subgraph edited while it waits": Story(with_subgraph(True), edited_inside),
    "subgraph called twice by a node": Story(calling_twice, two_turns),
    "fork": Story(letters, forked),
    "fork of a stateful subgraph": Story(with_subgraph(True, x=says("x")), forked),
    "fork at a question": Story(questions, forked_at_a_question),
    "fork at a question of a subgraph": Story(with_subgraph(None), forked_at_a_question),
    "deltas": Story(lambda story, **options: delta_chain(**options), deltas),
    "deltas in a subgraph": Story(delta_subgraph, deltas),
    "error then resume": Story(failing_once, fails_then_goes_on),
    "error that stays": Story(letters, two_turns, {"recursion_limit": 2}),
    "updates": Story(letters, edited),
    "breakpoints and commands": Story(letters, commanded),
    "entrypoint with tasks": Story(tasks, counted),
    "entrypoint that asks": Story(approving_tasks, approved),
}
