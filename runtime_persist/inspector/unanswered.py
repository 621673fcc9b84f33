"""Tool calls in a thread's messages that no tool has answered: behind such a call, models refuse to go on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict

from runtime_persist.adapters.workflow.values.raw import RawObject

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MESSAGES = "messages"
"""The channel in which agents keep their messages, unless asked otherwise."""


class UnansweredCall(BaseModel):
    """A tool call without its answer.

    Attributes:
        position: of the message that asks for it, from 0.
        tool_call_id: its id.
        name: the tool's name.
        dangling: messages have come since that answer nothing: a provider refuses these messages. Else the tools come
            next, or are being called: going on (``invoke(None)``) answers it.

    """

    model_config = ConfigDict(frozen=True)

    position: int
    tool_call_id: str
    name: str
    dangling: bool


def unanswered(messages: Any) -> list[UnansweredCall]:
    """Return the calls in messages (or one message, or none) that have no answer, in their order."""
    found = messages if isinstance(messages, list | tuple) else [messages]
    answers = {_of(message, "tool_call_id") for message in found}
    return list(_calls(found, answers))


def _calls(messages: Sequence[Any], answers: set[Any]) -> Iterator[UnansweredCall]:
    for position, message in enumerate(messages):
        goes_on = any(_of(later, "tool_call_id") is None for later in messages[position + 1 :])
        for call in _of(message, "tool_calls") or ():
            if call.get("id") not in answers:
                named = {"tool_call_id": str(call.get("id")), "name": str(call.get("name"))}
                yield UnansweredCall(position=position, dangling=goes_on, **named)


def _of(message: Any, name: str) -> Any:
    """Return a field of a message, also of one whose class is not here, or that is a plain dict."""
    if isinstance(message, RawObject):
        return message.fields.get(name)
    return message.get(name) if isinstance(message, dict) else getattr(message, name, None)
