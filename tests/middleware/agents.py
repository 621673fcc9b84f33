"""Agents of ``create_agent`` around a scripted chat model; every call of the model and of a tool is told outside."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.tools import tool
from langgraph.types import interrupt

from runtime_persist.adapters.middleware import idempotency_key

if TYPE_CHECKING:
    from collections.abc import Callable

USAGE = {"input_tokens": 7, "output_tokens": 2, "total_tokens": 9}
SAID = {"messages": [{"role": "user", "content": "pay a and b"}]}


def wants(*calls: tuple[str, dict[str, Any], str]) -> AIMessage:
    """A message that asks for tools: name, arguments, id of each."""
    asked = [{"name": name, "args": args, "id": call_id, "type": "tool_call"} for name, args, call_id in calls]
    return AIMessage(content="", tool_calls=asked, usage_metadata=USAGE)


PAYS = (
    wants(("pay", {"what": "a"}, "call-a"), ("pay", {"what": "b"}, "call-b")),
    AIMessage(content="both are paid"),
)


class Scripted(BaseChatModel):
    """Says the next message of its script: it looks at how many answers of its own there are."""

    script: Any = PAYS
    called: Any = None
    """Told the number of the answer and the messages it was asked with."""

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **_: Any) -> Scripted:
        del tools
        return self

    def _answer(self, messages: list[Any]) -> AIMessage:
        number = sum(isinstance(message, AIMessage) for message in messages)
        if self.called is not None:
            self.called(number, messages)
        answer: AIMessage = self.script[number].model_copy()
        return answer

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **_: Any) -> ChatResult:
        del stop, run_manager
        return ChatResult(generations=[ChatGeneration(message=self._answer(messages))])


class Streaming(Scripted):
    """Says its message in pieces."""

    def _stream(self, messages: Any, stop: Any = None, run_manager: Any = None, **_: Any) -> Any:
        del stop
        answer = self._answer(messages)
        for piece in answer.content.split(" ") or [""]:
            chunk = ChatGenerationChunk(message=AIMessageChunk(content=piece, tool_calls=answer.tool_calls))
            if run_manager is not None:
                run_manager.on_llm_new_token(piece, chunk=chunk)
            yield chunk


def payer(told: Callable[[str, str], Any]) -> Any:
    """A tool that pays; ``told`` is the outside."""

    @tool
    def pay(what: str) -> str:
        """Pay."""
        told(what, idempotency_key())
        return f"paid {what}"

    return pay


class Pausing(AgentMiddleware[Any, Any, Any]):
    """Outer middleware that asks a person behind a call, so that its node runs again; remembers what it was given."""

    def __init__(self, on: str) -> None:
        super().__init__()
        self.on = on
        self.seen: list[Any] = []

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        return self._behind("model", handler(request))

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        return self._behind("model", await handler(request))

    def wrap_tool_call(self, request: Any, handler: Any) -> Any:
        return self._behind(request.tool_call["id"], handler(request))

    async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
        return self._behind(request.tool_call["id"], await handler(request))

    def _behind(self, where: str, result: Any) -> Any:
        if where == self.on:
            self.seen.append(copy.deepcopy(result))  # LangGraph gives messages ids in place
            interrupt("go on?")
        return result


def agent(tools: Any, *middleware: Any, model: Any = None, **options: Any) -> Any:
    return create_agent(model or Scripted(), tools, middleware=middleware, **options)


def texts(output: Any) -> list[tuple[str, str]]:
    """Kind and text of each message."""
    return [(message.type, message.text) for message in output["messages"]]


def tool_texts(output: Any) -> list[str]:
    return [message.text for message in output["messages"] if isinstance(message, ToolMessage)]
