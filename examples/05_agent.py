"""An agent whose model and tool calls are journalled: what was completed is not asked for again, and hooks decide."""

import sys
import tempfile
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.types import Command, interrupt

from runtime_persist import Runtime
from runtime_persist.adapters.middleware import Deny, Hook, HookCall, JournalMiddleware, Patch, idempotency_key

charged: list[str] = []
asked: list[int] = []


class FakeModel(BaseChatModel):
    """Asks for two charges and an approval, then reports."""

    @property
    def _llm_type(self) -> str:
        return "fake"

    def bind_tools(self, tools: Any, **_: Any) -> "FakeModel":  # noqa: ARG002
        return self

    def _generate(self, messages: Any, *_: Any, **__: Any) -> ChatResult:
        answers = [message.text for message in messages if message.type == "tool"]
        asked.append(len(answers))
        said = AIMessage(content=" / ".join(answers))
        if not answers:
            calls = [("charge", {"cents": 4200}), ("charge", {"cents": 990_000}), ("approve", {"what": "shipping"})]
            wanted = [{"name": name, "args": args, "id": f"call-{n}"} for n, (name, args) in enumerate(calls)]
            said = AIMessage(content="", tool_calls=wanted)
        return ChatResult(generations=[ChatGeneration(message=said)])


@tool
def charge(cents: int) -> str:
    """Charge the card."""
    charged.append(idempotency_key())  # hand it to the card processor
    return f"charged {cents}"


@tool
def approve(what: str) -> str:
    """Ask a person."""
    return f"{what} {interrupt(f'approve {what}?')}"


def limit(call: HookCall) -> Deny | None:
    return Deny("more than 1,000.00 is not allowed") if call.request.get("cents", 0) > 100_000 else None


def mask(call: HookCall) -> Patch | None:
    return Patch(call.response.text.replace("4200", "42.00")) if call.name == "charge" else None


def make_agent() -> Any:
    journal = JournalMiddleware(
        tools={"charge": "retry"},  # the processor recognises the key; other tools ask a person when in doubt
        request_hooks=[Hook("limit", limit, on="tool")],
        response_hooks=[Hook("mask", mask, on="tool")],
    )
    return create_agent(FakeModel(), [charge, approve], middleware=[journal])  # the last one of the list


def main(url: str) -> None:
    config = {"configurable": {"thread_id": "order-7"}}
    with Runtime.open(url) as runtime:
        agent = runtime.bind(make_agent(), name="shop")
        agent.invoke({"messages": [{"role": "user", "content": "pay and ship order 7"}]}, config)
        (run,) = runtime.runs.list(thread_id="order-7")
        print(run.shown)
    with Runtime.open(url) as runtime:  # another process, another day
        agent = runtime.bind(make_agent(), name="shop")
        print(agent.invoke(Command(resume="approved"), config)["messages"][-1].text)
        print("charges made:", len(charged), "- model calls:", len(asked))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(sys.argv[1] if len(sys.argv) > 1 else f"sqlite:///{Path(folder) / 'agents.db'}")
