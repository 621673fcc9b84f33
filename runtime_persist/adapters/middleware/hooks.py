"""Hooks: what is asked before a model or tool call is made, and after it answered. Each decision is journalled.

A hook's call is an operation of its own, ``hook:<name>``: begun before the hook runs, its decision committed before the
call it decides about is begun. So after a crash the decisions that were stored are applied again to the same request,
which gives the same revision and the same frozen request, and only the hooks behind them run.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from runtime_persist.adapters.middleware.calling import Call, Making, Site, Steps, journalled
from runtime_persist.errors import InvalidInput, OperationFailed
from runtime_persist.journal import Happened
from runtime_persist.journal.operation import turned
from runtime_persist.journal.tries import UNKNOWN
from runtime_persist.model import limits
from runtime_persist.model.ids import is_short_name

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

CallKind: TypeAlias = Literal["model", "tool"]


@dataclass(frozen=True, slots=True)
class Deny:
    """Do not make the call (or, of a response hook, do not use what it answered).

    Attributes:
        text: what the model is told instead of the tool's answer; of a model call, the agent's answer.

    """

    text: str


@dataclass(frozen=True, slots=True)
class Patch:
    """Go on with a changed request or response.

    Attributes:
        value: of a tool request, its whole arguments; of a model request, what of ``messages``, ``system_prompt``,
            ``model_settings`` and ``tool_choice`` changes; of a tool response, its text, ToolMessage or Command; of a
            model response, an AIMessage or a list of messages.

    """

    value: Any


Decision: TypeAlias = Deny | Patch | None
"""None allows."""


@dataclass(frozen=True, slots=True)
class HookCall:
    """What a hook decides about.

    Attributes:
        kind: ``model`` or ``tool``.
        name: ``model``, or the tool's name.
        request: the tool's arguments, or ``messages``, ``system_prompt``, ``model_settings`` and ``tool_choice`` of the
            model call, as earlier hooks left them.
        response: None for request hooks; else the tool's ToolMessage or Command, or the model's messages.
        revision: how many patches were applied before.
        idempotency_key: stable over tries and takeovers: hand it to the outside when the hook asks one.

    """

    kind: CallKind
    name: str
    request: Mapping[str, Any]
    response: Any
    revision: int
    idempotency_key: str


@dataclass(frozen=True, slots=True)
class Hook:
    """One hook. Hooks run in the order they are given in.

    Attributes:
        name: explicit and stable, once among the request hooks and once among the response hooks.
        decide: called with a :class:`HookCall`; async only in async agents. When it raises, the call is not made (its
            answer not used) and the error goes on.
        on: about which calls it is asked.
        fetch: called with the idempotency key when the process died while the hook ran: returns ``(decision,)`` that
            the outside knows, or None when it knows none. Never calls anew.
        when_unknown: what becomes of the call when the hook ran, nothing is stored and nothing can be fetched:
            ``allow`` (the chain goes on without it) or ``deny``. The hook is not asked again.

    """

    name: str
    decide: Callable[[HookCall], Decision | Awaitable[Decision]]
    on: Literal["model", "tool", "both"] = "both"
    fetch: Callable[[str], tuple[Decision] | Awaitable[tuple[Decision] | None] | None] | None = None
    when_unknown: Literal["allow", "deny"] = "allow"

    def __post_init__(self) -> None:
        """Raise InvalidInput for a hook without a name, or with a long one."""
        if not is_short_name(self.name):
            most = limits.NAME_BYTES_MAX
            msg = f"a hook needs a non-empty text of at most {most} bytes as name, not {self.name!r:.100}"
            raise InvalidInput(msg)


def in_order(hooks: Sequence[Hook], which: str) -> tuple[Hook, ...]:
    """Return hooks after a look at their names.

    Raises:
        InvalidInput: a name is there twice: its decisions could not be told apart.

    """
    names = [hook.name for hook in hooks]
    for name in names:
        if names.count(name) > 1:
            msg = f"two {which} hooks are named {name!r}; a hook's name is its identity"
            raise InvalidInput(msg, name=name)
    return tuple(hooks)


def decided(hook: Hook, site: Site, stage: str, about: HookCall, digest: str) -> Steps[Decision]:
    """Return a hook's decision about a call: stored, fetched or made now.

    ``digest`` tells the request or response it decides about, as earlier hooks left it.
    """
    name, ordinal = f"hook:{hook.name}", f"{stage} {site.name} {site.ordinal}"
    turn = turned(site.turn.place, name, ordinal)
    making = Making(
        arguments={"of": site.name, "stage": stage, "revision": about.revision, "about": digest},
        on_unknown="fail" if hook.fetch is None else "reconcile",
        call=lambda key: Call(hook.decide, replace(about, idempotency_key=key)),
        stored=_stored,
        ask=None if hook.fetch is None else _fetching(hook.fetch),
        answer=lambda found: None if found is None else Happened(_stored(found[0])),
    )
    try:
        stored = yield from journalled(Site(turn, name, ordinal, site.blocks), making)
    except OperationFailed as error:
        if error.details.get("error_type") != UNKNOWN:
            raise
    else:
        return _loaded(stored)
    if hook.when_unknown == "deny":
        return Deny(f"what hook {hook.name!r} decided is not known, and it is not asked twice")
    return None


def _fetching(fetch: Callable[[str], Any]) -> Callable[[Any], Any]:
    return lambda asked: fetch(asked[1])


def _stored(decision: Any) -> Mapping[str, Any]:
    if decision is None:
        return {"decision": "allow"}
    if isinstance(decision, Deny):
        return {"decision": "deny", "value": decision.text}
    if isinstance(decision, Patch):
        return {"decision": "patch", "value": decision.value}
    msg = f"a hook returns None, Deny or Patch, not {type(decision).__qualname__}"
    raise InvalidInput(msg)


def _loaded(stored: Mapping[str, Any]) -> Decision:
    if stored["decision"] == "deny":
        return Deny(stored["value"])
    return Patch(stored["value"]) if stored["decision"] == "patch" else None
