"""A call's hooks, one behind the other, and what their decisions make of its request and response."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from langchain_core.messages import SystemMessage

from runtime_persist.adapters.middleware.hooks import Deny, HookCall, Patch, decided
from runtime_persist.adapters.middleware.requests import digested, model_arguments
from runtime_persist.adapters.middleware.responses import model_response, stored_model, tool_result
from runtime_persist.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from langchain.agents.middleware import ModelRequest
    from langchain.agents.middleware.types import ToolCallRequest

    from runtime_persist.adapters.middleware.calling import Site, Steps
    from runtime_persist.adapters.middleware.hooks import CallKind, Hook

Request = TypeVar("Request")
_PATCHED = ("messages", "model_settings", "system_prompt", "tool_choice")


@dataclass(frozen=True, slots=True)
class Asked(Generic[Request]):
    """A request behind its hooks.

    Attributes:
        request: what is sent.
        denied: the text of the hook that denied it.
        revision: how many patches were applied.

    """

    request: Request
    denied: str | None
    revision: int


class _Chain(Generic[Request]):
    kind: ClassVar[CallKind]

    def __init__(self, site: Site, before: tuple[Hook, ...], behind: tuple[Hook, ...]) -> None:
        self.site = site
        self.raw: Any = None  # what the call answered, before hooks changed it
        self._before = [hook for hook in before if hook.on in {self.kind, "both"}]
        self._behind = [hook for hook in behind if hook.on in {self.kind, "both"}]

    def requested(self, request: Request) -> Steps[Asked[Request]]:
        """Ask the request hooks; the first that denies ends the chain."""
        revision = 0
        for hook in self._before:
            about = self._about(request, None, revision)
            decision = yield from decided(hook, self.site, "request", about, self._digest(request))
            if isinstance(decision, Deny):
                return Asked(request, decision.text, revision)
            if isinstance(decision, Patch):
                request = self._patched(request, decision.value)
                revision += 1
        return Asked(request, None, revision)

    def accepting(self, asked: Asked[Request]) -> Callable[[Any], Steps[Any]] | None:
        """Return what asks the response hooks about a raw answer, None without any; the first that denies ends it."""

        def accept(raw: Any) -> Steps[Any]:
            self.raw = raw
            response, revision = self._received(asked.request, raw), asked.revision
            for hook in self._behind:
                shown = self._shown(response)
                about = self._about(asked.request, shown, revision)
                decision = yield from decided(hook, self.site, "response", about, digested(shown))
                if isinstance(decision, Deny):
                    return self._replaced(asked.request, decision.text)
                if isinstance(decision, Patch):
                    response = self._replaced(asked.request, decision.value)
                    revision += 1
            return response

        return accept if self._behind else None

    def _about(self, request: Request, response: Any, revision: int) -> HookCall:
        return HookCall(self.kind, self.site.name, self._view(request), response, revision, "")

    def _view(self, request: Request) -> Mapping[str, Any]:
        raise NotImplementedError

    def _digest(self, request: Request) -> str:
        raise NotImplementedError

    def _patched(self, request: Request, value: Any) -> Request:
        raise NotImplementedError

    def _received(self, request: Request, raw: Any) -> Any:
        del request
        return raw

    def _shown(self, response: Any) -> Any:
        return response

    def _replaced(self, request: Request, value: Any) -> Any:
        raise NotImplementedError


class ModelChain(_Chain["ModelRequest[Any]"]):
    """The hooks of a model call."""

    kind = "model"

    def _view(self, request: ModelRequest[Any]) -> Mapping[str, Any]:
        return {name: getattr(request, name) for name in _PATCHED}

    def _digest(self, request: ModelRequest[Any]) -> str:
        return str(model_arguments(request)["request"])

    def _patched(self, request: ModelRequest[Any], value: Any) -> ModelRequest[Any]:
        if not isinstance(value, dict) or not set(value) <= set(_PATCHED):
            msg = f"a patch of a model request is a dict of {', '.join(_PATCHED)}"
            raise InvalidInput(msg)
        changes = dict(value)
        if "system_prompt" in changes:
            text = changes.pop("system_prompt")
            changes["system_message"] = None if text is None else SystemMessage(content=text)
        return request.override(**changes)

    def _shown(self, response: Any) -> Any:
        return model_response(response).result

    def _replaced(self, request: ModelRequest[Any], value: Any) -> Any:
        del request
        return stored_model(model_response(value))


class ToolChain(_Chain["ToolCallRequest"]):
    """The hooks of a tool call."""

    kind = "tool"

    def _view(self, request: ToolCallRequest) -> Mapping[str, Any]:
        return request.tool_call["args"]

    def _digest(self, request: ToolCallRequest) -> str:
        return digested(request.tool_call["args"])

    def _patched(self, request: ToolCallRequest, value: Any) -> ToolCallRequest:
        if not isinstance(value, dict):
            msg = "a patch of a tool request is a dict: its whole arguments"
            raise InvalidInput(msg)
        return request.override(tool_call={**request.tool_call, "args": value})

    def _received(self, request: ToolCallRequest, raw: Any) -> Any:
        return tool_result(raw, request.tool_call)  # a person may have said it in a word

    def _replaced(self, request: ToolCallRequest, value: Any) -> Any:
        return tool_result(value, request.tool_call)
