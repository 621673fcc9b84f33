"""What model and tool calls return, as the journal keeps it and gives it back: messages with their ids, verbatim."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson
from langchain.agents.middleware import ModelResponse
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langgraph.types import Command

from runtime_persist.model.budgets import Usage

if TYPE_CHECKING:
    from collections.abc import Mapping

_MODEL_KEYS = {"messages", "structured_response"}


def stored_model(response: Any) -> Mapping[str, Any]:
    """Return a model's response as plain values around its messages."""
    if isinstance(response, BaseMessage):
        return {"messages": [response], "structured_response": None}
    return {"messages": list(response.result), "structured_response": response.structured_response}


def model_response(stored: Any) -> ModelResponse[Any]:
    """Return a model's response; a person who said what the model answered may have said a text or messages."""
    if isinstance(stored, dict) and set(stored) == _MODEL_KEYS:
        return ModelResponse(result=list(stored["messages"]), structured_response=stored["structured_response"])
    if isinstance(stored, BaseMessage):
        return ModelResponse(result=[stored])
    if isinstance(stored, list) and all(isinstance(one, BaseMessage) for one in stored):
        return ModelResponse(result=list(stored))
    return ModelResponse(result=[AIMessage(content=_text(stored))])


def usage_of(stored: Any) -> Usage | None:
    """Return the tokens that the provider says a model call took; None when it says nothing."""
    messages = stored["messages"] if isinstance(stored, dict) and set(stored) == _MODEL_KEYS else []
    said = [message.usage_metadata for message in messages if isinstance(message, AIMessage)]
    found = [usage["total_tokens"] for usage in said if usage is not None]
    return Usage(tokens=sum(found)) if found else None


def tool_result(stored: Any, call: Mapping[str, Any]) -> ToolMessage | Command[Any]:
    """Return a tool's result; what a person said it returned becomes its message."""
    if isinstance(stored, ToolMessage | Command):
        return stored
    return ToolMessage(content=_text(stored), name=call["name"], tool_call_id=call["id"] or "")


def denied_tool(text: str, call: Mapping[str, Any]) -> ToolMessage:
    """Return what the model is told about a tool call that a hook denied."""
    return ToolMessage(content=text, name=call["name"], tool_call_id=call["id"] or "", status="error")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value, default=str).decode()
