"""JournalMiddleware: each model call and each tool call of an agent is an operation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from langchain.agents.middleware import AgentMiddleware

from runtime_persist.adapters.middleware.calling import Call, Making, Site, adrive, drive, journalled
from runtime_persist.adapters.middleware.chains import ModelChain, ToolChain
from runtime_persist.adapters.middleware.hooks import in_order
from runtime_persist.adapters.middleware.requests import model_arguments
from runtime_persist.adapters.middleware.responses import (
    denied_tool,
    model_response,
    stored_model,
    tool_result,
    usage_of,
)
from runtime_persist.errors import InvalidInput
from runtime_persist.journal import OnUnknown, Reconcile
from runtime_persist.journal.operation import turned
from runtime_persist.journal.place import current_place
from runtime_persist.model.budgets import Ticket

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from langchain.agents.middleware import ModelRequest, ModelResponse
    from langchain.agents.middleware.types import ToolCallRequest
    from langchain_core.messages import ToolMessage
    from langgraph.types import Command

    from runtime_persist.adapters.middleware.calling import Steps
    from runtime_persist.adapters.middleware.hooks import Hook

ToolPolicy: TypeAlias = OnUnknown | Literal["inside"] | Reconcile
_MODEL = "model"
_ASK: ToolPolicy = "ask"
_INSIDE = "inside"
_LOOP = Ticket("loop")
_TOOL_CALL = Ticket("tool_call")


class JournalMiddleware(AgentMiddleware[Any, Any, Any]):
    """Journal the model calls and tool calls of ``create_agent``: ``middleware=[…, JournalMiddleware()]``, as the last.

    The last in the list is the innermost: what middleware before it changed is what is sent, so it is what is
    journalled, and each try of a retry middleware is a call of its own. A call that was completed is not made again
    when its node runs again: its messages come back verbatim, with ids, usage metadata and tool call ids.

    A model call is named ``model`` with its position among the task's model calls; a tool call is named like the tool,
    with the tool call's id and its position among the task's calls of that id. The agent runs bound to a run
    (``runtime.bind(agent, name=…)`` or a worker's registry).

    Args:
        tools: what an unknown tool call does (see ``runtime_persist.operation``; a function asks the outside), for all
            tools or by their names; tools without one ask. ``inside``: the tool is no operation, what it does is
            journalled by ``@operation`` in it.
        models: what an unknown model call does.
        request_hooks: asked in this order before a call is begun.
        response_hooks: asked in this order about what a call answered.
        loop: what a model call takes of the run's budget, if that has one; ``Ticket("loop", tokens=…)`` reserves what
            it may use. What it used is what the provider reports, unless the ticket says how to tell.

    Raises:
        InvalidInput: an unknown policy, or two hooks of one stage with one name.

    """

    def __init__(
        self,
        *,
        tools: ToolPolicy | Mapping[str, ToolPolicy] = "ask",
        models: OnUnknown = "retry",
        request_hooks: Sequence[Hook] = (),
        response_hooks: Sequence[Hook] = (),
        loop: Ticket = _LOOP,
    ) -> None:
        """Check the policies."""
        super().__init__()
        self._by_tool: dict[str, ToolPolicy] = dict(tools) if isinstance(tools, Mapping) else {}
        self._tools: ToolPolicy = _ASK if isinstance(tools, Mapping) else tools
        self._models: str = models
        self._loop = loop
        self._used = loop.usage or usage_of
        known = get_args(OnUnknown)
        for policy in (self._tools, *self._by_tool.values()):
            if not callable(policy):
                _check("tools", policy, (*known, _INSIDE))
        _check("models", models, known)
        self._hooks = in_order(request_hooks, "request"), in_order(response_hooks, "response")

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Journal a model call."""
        return drive(self._model(request, handler, blocks=True))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        """Journal a model call."""
        return await adrive(self._model(request, handler, blocks=False))

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolMessage | Command[Any]]
    ) -> ToolMessage | Command[Any]:
        """Journal a tool call."""
        return drive(self._tool(request, handler, blocks=True))

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]]
    ) -> ToolMessage | Command[Any]:
        """Journal a tool call."""
        return await adrive(self._tool(request, handler, blocks=False))

    def _model(
        self, request: ModelRequest[Any], handler: Callable[[Any], Any], *, blocks: bool
    ) -> Steps[ModelResponse[Any]]:
        place = current_place(_MODEL)
        if place is None:
            outside: ModelResponse[Any] = yield Call(handler, request)
            return outside
        turn = turned(place, _MODEL, None)
        try:
            chain = ModelChain(Site(turn, _MODEL, turn.ordinal, blocks), *self._hooks)
            asked = yield from chain.requested(request)
            if asked.denied is not None:
                return model_response(asked.denied)
            making = Making(
                arguments=model_arguments(asked.request),
                on_unknown=self._models,
                call=lambda _: Call(handler, asked.request),
                stored=stored_model,
                ticket=replace(self._loop, usage=lambda stored: self._used(chain.raw or stored)),
                accept=chain.accepting(asked),
            )
            return model_response((yield from journalled(chain.site, making)))
        finally:
            turn.over()

    def _tool(
        self, request: ToolCallRequest, handler: Callable[[Any], Any], *, blocks: bool
    ) -> Steps[ToolMessage | Command[Any]]:
        name, call_id = request.tool_call["name"], request.tool_call["id"] or ""
        place = current_place(name)
        if place is None:
            outside: ToolMessage | Command[Any] = yield Call(handler, request)
            return outside
        # Counted by the call's id: calls of one tool run in parallel, also in one task.
        turn = turned(place, f"{name}({call_id})", None)
        try:
            chain = ToolChain(Site(turn, name, f"{call_id}{turn.ordinal}", blocks), *self._hooks)
            asked = yield from chain.requested(request)
            if asked.denied is not None:
                return denied_tool(asked.denied, request.tool_call)
            policy = self._by_tool.get(name, self._tools)
            if policy == _INSIDE:
                with turn.inside():
                    result = yield Call(handler, asked.request)
                accept = chain.accepting(asked)
                return tool_result(result if accept is None else (yield from accept(result)), request.tool_call)
            making = Making(
                arguments=asked.request.tool_call["args"],
                on_unknown="reconcile" if callable(policy) else policy,
                call=lambda _: Call(handler, asked.request),
                stored=lambda returned: returned,
                ticket=_TOOL_CALL,
                ask=(lambda known: policy(*known)) if callable(policy) else None,
                accept=chain.accepting(asked),
            )
            return tool_result((yield from journalled(chain.site, making)), request.tool_call)
        finally:
            turn.over()


def _check(what: str, policy: object, known: tuple[str, ...]) -> None:
    if policy not in known:
        msg = f"{what} must be one of {', '.join(known)}, not {policy!r}"
        raise InvalidInput(msg, on_unknown=repr(policy))
