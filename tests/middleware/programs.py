"""What the processes of these tests run: an agent that stops, or dies, where it is told."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.types import interrupt

from runtime_persist import Runtime
from runtime_persist.adapters.middleware import Hook, JournalMiddleware, Patch
from tests.middleware.agents import PAYS, SAID, Scripted, agent, payer, wants
from tests.soak.programs import Outside
from tests.support.graphs import config

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.processes import Word

ONE = (wants(("pay", {"what": "a"}, "call-a")), AIMessage(content="done"))


def counted(outside: Outside) -> Counter[str]:
    """How often each call reached the outside."""
    return Counter(words[0] for words in outside.lines())


class Between(AgentMiddleware[Any, Any, Any]):
    """A node between a model call and its tools."""

    def __init__(self, enters: Callable[..., None]) -> None:
        super().__init__()
        self.enters = enters

    def after_model(self, state: Any, runtime: Any) -> None:
        del runtime
        self.enters(f"between{len(state['messages'])}")


def paying(outside: Outside, stops: Callable[[str], None] = lambda _: None, script: Any = PAYS, **policies: Any) -> Any:
    """An agent that pays a and b at the same time; the outside is told of each call before it may stop."""

    def enters(where: str, key: str = "-") -> None:
        outside.append(where, key)
        stops(where)

    model = Scripted(script=script, called=lambda number, _: enters(f"model{number}"))
    pay = payer(lambda what, key: enters(f"pay-{what}", key))
    return agent([pay], Between(enters), JournalMiddleware(**policies), model=model)


def caller(word: Word, url: str, path: str, where: list[str], asynchronous: bool, policies: dict[str, Any]) -> None:
    """Call the agent; wherever it shall stop it says so, and waits for the word that never comes."""

    def stops(here: str) -> None:
        if here in where:
            word.say("at", here)
            threading.Event().wait()

    with Runtime.open(url) as runtime:
        _invoke(runtime, paying(Outside(Path(path)), stops, **policies), asynchronous)


def _invoke(runtime: Runtime, made: Any, asynchronous: bool) -> None:
    graph = runtime.bind(made, name="agent")
    if asynchronous:
        asyncio.run(graph.ainvoke(SAID, config()))
    else:
        graph.invoke(SAID, config())


ASKING = (
    wants(("pay", {"what": "a"}, "call-a"), ("approve", {"what": "b"}, "call-b")),
    AIMessage(content="done"),
)


def asking(outside: Outside) -> Any:
    """An agent that pays, and asks a person, in one message."""

    @tool
    def approve(what: str) -> str:
        """Ask a person."""
        return f"{what}: {interrupt('may I?')}"

    def paid(what: str, key: str) -> None:
        outside.append("pay", what, key)

    return agent([payer(paid), approve], JournalMiddleware(), model=Scripted(script=ASKING))


def asks(_: Word, url: str, path: str, asynchronous: bool) -> None:
    """Call the agent that pays and asks; the process ends when the question is stored."""
    with Runtime.open(url) as runtime:
        _invoke(runtime, asking(Outside(Path(path))), asynchronous)


# --- hooks ------------------------------------------------------------------------------------------------------------


def hooked(outside: Outside, kind: str, stops: Callable[[str], None] = lambda _: None, **options: Any) -> Any:
    """An agent with two request hooks and two response hooks around its calls of one kind, which all patch."""

    def hook(name: str, patch: Callable[[Any], Any]) -> Hook:
        def decide(call: Any) -> Patch:
            outside.append(name, call.revision)
            stops(name)
            return Patch(patch(call))

        return Hook(name, decide, on=kind, **options)  # type: ignore[arg-type]

    if kind == "tool":
        requests = [hook(name, lambda call: {"what": call.request["what"] + "!"}) for name in ("ask1", "ask2")]
        responses = [hook(name, lambda call: call.response.text + "?") for name in ("say1", "say2")]
    else:
        prompt = lambda call: {"system_prompt": f"{call.request['system_prompt'] or ''}!"}  # noqa: E731
        requests = [hook(name, prompt) for name in ("ask1", "ask2")]
        responses = [
            hook(name, lambda call: AIMessage(content=call.response[0].text + "?")) for name in ("say1", "say2")
        ]
    script = ONE if kind == "tool" else (AIMessage(content="done"),)
    model = Scripted(
        script=script, called=lambda number, said: outside.append(f"model{number}", f"said:{said[0].text}")
    )
    pay = payer(lambda what, _: outside.append("pay", what))
    journal = JournalMiddleware(request_hooks=requests, response_hooks=responses)
    return agent([pay], journal, model=model)


def dies(_: Word, url: str, path: str, kind: str, asynchronous: bool, command: str, behind: int) -> None:
    """Call the hooked agent; dies when a command of this name is committed, behind ``behind`` earlier ones."""
    with Runtime.open(url) as runtime:
        coordinator = runtime.engine.coordinator
        commits, left = coordinator.commit, [behind]

        def commit(sent: Any, **options: Any) -> Any:
            future = commits(sent, **options)
            if type(sent).__name__ == command:
                left[0] -= 1
                if left[0] < 0:
                    future.result()
                    os.kill(os.getpid(), signal.SIGKILL)
                    threading.Event().wait()
            return future

        coordinator.commit = commit  # type: ignore[method-assign]
        _invoke(runtime, hooked(Outside(Path(path)), kind), asynchronous)


def dies_in_hook(_: Word, url: str, path: str, name: str, asynchronous: bool) -> None:
    """Call the hooked agent; dies while the hook of this name runs."""

    def stops(here: str) -> None:
        if here == name:
            os.kill(os.getpid(), signal.SIGKILL)
            threading.Event().wait()

    with Runtime.open(url) as runtime:
        _invoke(runtime, hooked(Outside(Path(path)), "tool", stops), asynchronous)
