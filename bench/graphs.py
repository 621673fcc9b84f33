"""Whole graphs: what a step costs with each saver, and without one."""

from __future__ import annotations

import asyncio
import itertools
import operator
import random
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Send

from bench.loads import message, texts
from bench.measure import quietest
from bench.savers import SAVERS

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.options import Options
    from bench.savers import Lab, Open

LOOP, FAN_OUT, AGENT = "loop", "fan-out", "create_agent"
SYNC, ASYNC, EXIT = "sync", "async", "exit"
LOOP_STEPS, SENDS, AGENT_STEPS = 10, 50, 7
NONE = {"none": False, "none-sync": True}
"""The graph without a saver: its key, and whether it is called by the sync methods."""


@dataclass(frozen=True)
class Case:
    """A graph, how its checkpoints are made durable, and how many runs go on at once."""

    graph: str
    durability: str
    callers: int = 1

    @property
    def name(self) -> str:
        return f"{self.graph}, {self.durability}, {self.callers} at once"


CASES = (
    Case(LOOP, SYNC),
    Case(LOOP, ASYNC),
    Case(LOOP, EXIT),
    Case(LOOP, ASYNC, 8),
    Case(FAN_OUT, SYNC),
    Case(FAN_OUT, ASYNC),
    Case(FAN_OUT, ASYNC, 8),
    Case(AGENT, SYNC),
    Case(AGENT, ASYNC),
    Case(AGENT, EXIT),
)


class _LoopState(TypedDict):
    messages: Annotated[list, add_messages]
    left: int


class _FanState(TypedDict):
    items: list
    results: Annotated[list, operator.add]


def _node(work: Callable, *, sync: bool) -> Callable:
    async def node(state):
        return work(state)

    return work if sync else node


def _loop(saver, *, sync: bool):
    def work(state):
        return {"messages": [message()], "left": state["left"] - 1}

    graph = StateGraph(_LoopState).add_node("node", _node(work, sync=sync)).add_edge(START, "node")
    graph.add_conditional_edges("node", lambda state: "node" if state["left"] else END, ["node", END])
    return graph.compile(checkpointer=saver)


def _fan_out(saver, *, sync: bool):
    def work(item):
        return {"results": [{"item": item["item"], "text": texts()[item["item"]]}]}

    graph = StateGraph(_FanState)
    graph.add_node("plan", lambda _: {"items": list(range(SENDS))})
    graph.add_node("work", _node(work, sync=sync))
    graph.add_node("join", lambda _: {"items": []})
    graph.add_edge(START, "plan")
    graph.add_conditional_edges("plan", lambda state: [Send("work", {"item": one}) for one in state["items"]], ["work"])
    graph.add_edge("work", "join").add_edge("join", END)
    return graph.compile(checkpointer=saver)


class _Scripted(GenericFakeChatModel):
    """A chat model that says what it is given."""

    def bind_tools(self, tools, **_):  # noqa: ARG002 (LangChain's signature)
        return self


@tool
def search(words: str) -> str:
    """Search."""
    return texts()[1] + words


def _agent(saver, *, sync: bool):  # noqa: ARG001 (one graph serves both)
    from langchain.agents import create_agent

    def script():
        number = 0
        while True:
            for _ in range(AGENT_STEPS // 2):
                number += 1
                call = {"name": "search", "args": {"words": str(number)}, "id": f"call{number}"}
                yield AIMessage(texts()[number][:300], tool_calls=[call])
            yield AIMessage(texts()[number])

    return create_agent(_Scripted(messages=script()), [search], checkpointer=saver)


@dataclass(frozen=True)
class _Kind:
    make: Callable[..., Any]
    inputs: Callable[[dict[str, Any] | None], dict[str, Any]]
    turns: int
    steps: int
    new_threads: bool = False


KINDS = {
    LOOP: _Kind(_loop, lambda old: {"messages": old["messages"] if old else [], "left": LOOP_STEPS}, 20, LOOP_STEPS),
    FAN_OUT: _Kind(_fan_out, lambda _: {"items": [], "results": []}, 3, SENDS + 2, new_threads=True),
    AGENT: _Kind(
        _agent,
        lambda old: {"messages": [*(old["messages"] if old else []), HumanMessage(texts()[0])]},
        5,
        AGENT_STEPS,
    ),
}


async def measure(lab: Lab, options: Options) -> list[dict[str, Any]]:
    """Return a row a saver, case and round: milliseconds a step (of a fan-out: a task)."""
    opened = await lab.open_all(options.savers(SAVERS))
    keys = [*NONE, *opened]
    rows = []
    for turn in options.rounds_of("graphs"):
        for case in options.progress(cases(options), f"graphs, round {turn + 1}"):
            random.Random(f"{turn} {case.name}").shuffle(keys)
            for key in keys:
                if not _takes_part(key, opened.get(key), case):
                    continue
                named = {"saver": key, "graph": case.graph, "durability": case.durability, "callers": case.callers}
                rows.append(named | {"round": turn} | await _measured(lab, key, opened.get(key), case, turn, options))
    return rows


def cases(options: Options) -> list[Case]:
    """Return the cases that are wanted."""
    wanted = [case for case in CASES if options.wants(case.name)]
    return (
        [case for case in wanted if case.durability != EXIT and case.graph != AGENT and case.callers == 1]
        if options.quick
        else wanted
    )


def _takes_part(key: str, opened: Open | None, case: Case) -> bool:
    if opened is not None:
        return not (opened.saver.owned and case.durability == EXIT)
    return key in NONE and case.durability != EXIT


async def _measured(lab: Lab, key: str, opened: Open | None, case: Case, turn: int, options: Options) -> dict[str, Any]:
    sync = NONE[key] if opened is None else opened.saver.sync
    kind = KINDS[case.graph]
    turns = max(1, kind.turns // (5 if options.quick else 4 if case.callers > 1 and case.graph == LOOP else 1))
    graph = _graph(kind, opened, case, sync=sync)
    tries = itertools.count()

    async def work(turns: int = turns) -> None:
        await _runs(graph, kind, case, f"{turn} {next(tries)}", opened is None, turns, sync=sync)

    await work(1)
    _, watched = await quietest(lab.machine, work)
    steps = turns * kind.steps * case.callers
    return {"ms": watched.seconds / steps * 1e3, "others": watched.others, "noisy": watched.noisy, "n": steps}


def _graph(kind: _Kind, opened: Open | None, case: Case, *, sync: bool):
    if opened is None:
        return kind.make(None, sync=sync)
    if opened.saver.owned:
        return opened.runtime.bind(kind.make(None, sync=sync), name=case.graph)
    return kind.make(opened.inner, sync=sync)


async def _runs(graph, kind: _Kind, case: Case, label: str, bare: bool, turns: int, *, sync: bool) -> None:  # noqa: FBT001
    """Run the graph for each caller at once: tasks, or threads for the sync methods."""
    options = {} if bare else {"durability": case.durability}
    chats = [f"{case.name} {label} {place}" for place in range(case.callers)]

    def given(chat: str, turn: int, old: dict[str, Any] | None):
        thread_id = f"{chat} {turn}" if kind.new_threads else chat
        config = {"configurable": {"thread_id": thread_id}, "recursion_limit": 100}
        return kind.inputs(old if bare and not kind.new_threads else None), config

    async def run(chat: str) -> None:
        old = None
        for turn in range(turns):
            old = await graph.ainvoke(*given(chat, turn, old), **options)
        _check(kind, old, turns)

    def run_sync(chat: str) -> None:
        old = None
        for turn in range(turns):
            old = graph.invoke(*given(chat, turn, old), **options)
        _check(kind, old, turns)

    if not sync:
        await asyncio.gather(*map(run, chats))
    elif len(chats) == 1:
        await asyncio.to_thread(run_sync, chats[0])
    else:
        with ThreadPoolExecutor(len(chats)) as pool:
            await asyncio.gather(*(asyncio.get_running_loop().run_in_executor(pool, run_sync, chat) for chat in chats))


def _check(kind: _Kind, state: dict[str, Any], turns: int) -> None:
    """A saver that lost something would be fast."""
    if kind is KINDS[FAN_OUT]:
        assert len(state["results"]) == SENDS
    else:
        expected = turns * (LOOP_STEPS if kind is KINDS[LOOP] else AGENT_STEPS + 1)
        assert len(state["messages"]) == expected
