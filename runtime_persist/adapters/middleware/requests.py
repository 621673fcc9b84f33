"""What a model call asked for, as the journal compares it: what is sent to the provider, and nothing that is not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson
from langchain_core.messages import BaseMessage
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.types import Command
from pydantic import BaseModel

from runtime_persist.model.keys import fingerprint

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from langchain.agents.middleware import ModelRequest

_NOT_SENT = {"id", "response_metadata", "usage_metadata", "artifact"}
_SAID_CHARS = 120


def model_arguments(request: ModelRequest[Any]) -> Mapping[str, Any]:
    """Return the request for the journal: short text for people, and a fingerprint of all that is sent.

    Ids of messages are not part of it (providers never see them, and middleware makes new ones each time).
    """
    sent = {
        "model": _model_name(request.model),
        "system": None if request.system_message is None else _message(request.system_message),
        "messages": [_message(message) for message in request.messages],
        "tools": [tool if isinstance(tool, dict) else convert_to_openai_tool(tool) for tool in request.tools],
        "tool_choice": request.tool_choice,
        "response_format": request.response_format,
        "settings": request.model_settings,
    }
    last = request.messages[-1].text if request.messages else ""
    return {
        "model": sent["model"],
        "messages": len(request.messages),
        "last": last[:_SAID_CHARS],
        "request": digested(sent),
    }


def digested(value: Any) -> str:
    """Return a fingerprint of plain values and messages, the same in every process."""
    data = orjson.dumps(value, default=_plain, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS)
    return fingerprint(data).hex()


def _plain(value: Any) -> Any:
    """Return what tells a value from another one, the same in every process (``repr`` has addresses)."""
    for kinds, plain in _PLAIN:
        if isinstance(value, kinds):
            return plain(value)
    schema = getattr(value, "schema", None)  # of a response format
    name = _name(type(value))
    return [name, _name(schema)] if isinstance(schema, type) else name


def _message(message: BaseMessage) -> Any:
    return message.model_dump(exclude=_NOT_SENT)


def _model_name(model: Any) -> str:
    for attribute in ("model_name", "model", "model_id"):
        found = getattr(model, attribute, None)
        if isinstance(found, str) and found:
            return found
    return type(model).__qualname__


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _command(command: Command[Any]) -> Any:
    return {"update": command.update, "goto": command.goto, "resume": command.resume, "graph": command.graph}


_PLAIN: tuple[tuple[Any, Callable[[Any], Any]], ...] = (
    (BaseMessage, _message),
    (BaseModel, lambda value: value.model_dump(fallback=_plain)),
    (Command, _command),
    (type, _name),
    (bytes | bytearray | memoryview, lambda value: bytes(value).hex()),
    (set | frozenset, lambda value: sorted(value, key=str)),
)
