"""Two conversations whose bytes are counted: a chat with a document and a plan, and one with a big file (row E1)."""

from __future__ import annotations

import operator
import random
import string
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages

from bench.loads import message, prose

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

TURNS = (25, 50, 100, 200)
DICT, STR = "dict", "str"
FILE_TURNS, FILE_THREADS = 50, 10
_DOCUMENT_CHARACTERS = 100_000
_TASKS = 100
_QUESTION_CHARACTERS, _FILE_CHARACTERS, _FILE_MESSAGE = 120, 500_000, 2_000
_CHARACTERS = string.ascii_letters + string.digits


class _ChatState(TypedDict):
    messages: Annotated[list, add_messages]
    document: Any
    plan: dict


class _FileState(TypedDict):
    files: list
    msgs: Annotated[list, operator.add]


def _plan(source: random.Random) -> dict[str, Any]:
    """Return about 20 KB of tasks."""
    tasks = [
        {
            "id": number,
            "title": prose(60, source),
            "status": "open",
            "owner": None,
            "notes": prose(90, source),
            "tries": 0,
        }
        for number in range(_TASKS)
    ]
    return {"goal": "ship", "tasks": tasks}


def _chat_graph(saver, *, sync: bool):
    source = random.Random(9)

    def work(state):
        tasks = list(state["plan"]["tasks"])
        place = source.randrange(_TASKS)
        tasks[place] = tasks[place] | {"status": source.choice(["open", "done"]), "tries": tasks[place]["tries"] + 1}
        return {"messages": [message()], "plan": state["plan"] | {"tasks": tasks}}

    return _one_node(_ChatState, work, saver, sync=sync)


def _one_node(state, work, saver, *, sync: bool):
    async def node(given):
        return work(given)

    graph = StateGraph(state).add_node("node", work if sync else node)
    return graph.add_edge(START, "node").add_edge("node", END).compile(checkpointer=saver)


async def chat(saver, turns: int, document: str, *, sync: bool = False, thread_id: str = "chat") -> AsyncIterator[int]:
    """Hold a chat: each turn adds two messages (1 KB) and changes one task of the plan; yield the turns done.

    Args:
        saver: where it is stored.
        turns: of the chat.
        document: the 100 KB document that never changes: ``dict`` or ``str``.
        sync: call the sync methods.
        thread_id: of the chat.

    """
    source = random.Random(5)
    text = prose(_DOCUMENT_CHARACTERS, source)
    given: dict[str, Any] = {
        "plan": _plan(source),
        "document": {"title": "doc", "body": text} if document == DICT else text,
    }
    graph = _chat_graph(saver, sync=sync)
    config = {"configurable": {"thread_id": thread_id}}
    for turn in range(1, turns + 1):
        given["messages"] = [message(_QUESTION_CHARACTERS)]
        state = graph.invoke(given, config) if sync else await graph.ainvoke(given, config)
        given = {}
        yield turn
    assert len(state["messages"]) == 2 * turns


async def files(saver, threads: range) -> None:
    """Row E1: threads that hold one and the same file of 0.5 MB, with 50 turns of 2 kB each."""
    source = random.Random(1)
    file = "".join(source.choices(_CHARACTERS, k=_FILE_CHARACTERS))
    source = random.Random(f"{threads}")

    def work(_):
        return {"msgs": ["".join(source.choices(_CHARACTERS, k=_FILE_MESSAGE))]}

    graph = _one_node(_FileState, work, saver, sync=False)
    for number in threads:
        config = {"configurable": {"thread_id": f"files {number}"}}
        given: dict[str, Any] = {"files": [file]}
        for _ in range(FILE_TURNS):
            state = await graph.ainvoke(given, config)
            given = {"msgs": []}
        assert len(state["msgs"]) == FILE_TURNS
