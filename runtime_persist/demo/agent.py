"""The agent of the demo: LangChain's create_agent, a scripted chat model, and three tools. One charges a card."""

from __future__ import annotations

import json
import os
import urllib.request
from typing import TYPE_CHECKING, Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import BaseTool, tool

from runtime_persist import operation
from runtime_persist.demo import stage

if TYPE_CHECKING:
    from langchain_core.callbacks import CallbackManagerForLLMRun

_SCRIPT = (
    ("look_up_order", {"order_id": "order-7"}),
    ("charge_card", {"order_id": "order-7", "cents": 4_200}),
    ("send_receipt", {"order_id": "order-7"}),
)


class ScriptedModel(BaseChatModel):
    """A chat model that follows a script: it looks only at how many tools have answered."""

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **_: Any) -> ScriptedModel:
        """Ignore the tools: the script knows them."""
        del tools
        return self

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        del stop, run_manager, kwargs
        done = sum(isinstance(message, ToolMessage) for message in messages)
        if done < len(_SCRIPT):
            name, arguments = _SCRIPT[done]
            call = {"name": name, "args": arguments, "id": f"call-{done}", "type": "tool_call"}
            answer = AIMessage(content="", tool_calls=[call])
        else:
            answer = AIMessage(content="Order 7 is paid; the receipt is on its way.")
        return ChatResult(generations=[ChatGeneration(message=answer)])


def _post(path: str, key: str, body: dict[str, Any]) -> dict[str, Any]:
    request = urllib.request.Request(
        f"http://127.0.0.1:{os.environ[stage.PORT]}{path}",
        data=json.dumps(body).encode(),
        headers={"Idempotency-Key": key, "Content-Type": "application/json"},
        method="POST",
    )
    with urllib.request.urlopen(request) as reply:  # noqa: S310 (loopback)
        answer: dict[str, Any] = json.loads(reply.read())
        return answer


def _charge(order_id: str, cents: int, *, idempotency_key: str) -> dict[str, Any]:
    """Charge the card, and stop at the demo's cue before or after the card processor was called."""
    stage.cue("before-effect")
    answer = _post("/charge", idempotency_key, {"order_id": order_id, "cents": cents})
    stage.cue("after-effect")
    return answer


_charge_or_repeat = operation(name="charge", on_unknown="retry")(_charge)
_charge_or_ask = operation(name="charge", on_unknown="ask")(_charge)


@tool
def look_up_order(order_id: str) -> str:
    """Look an order up."""
    return f"{order_id}: two tickets, 42.00"


@tool
def send_receipt(order_id: str) -> str:
    """Send the receipt."""
    return f"receipt for {order_id} sent"


@tool("charge_card")
def charge_or_repeat(order_id: str, cents: int) -> str:
    """Charge a card; the processor recognises idempotency keys, so an unknown call is sent again."""
    return json.dumps(_charge_or_repeat(order_id, cents))


@tool("charge_card")
def charge_or_ask(order_id: str, cents: int) -> str:
    """Charge a card; a call whose outcome is unknown is a person's to judge."""
    return json.dumps(_charge_or_ask(order_id, cents))


def _agent(charge: BaseTool) -> Any:
    return create_agent(ScriptedModel(), [look_up_order, charge, send_receipt])


registry = {"checkout": _agent(charge_or_repeat), "checkout-ask": _agent(charge_or_ask)}
"""What the workers of the demo are started with."""
