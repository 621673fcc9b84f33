"""An agent on a budget, with a read-only tool: a flaky look-up is tried again, a spent budget asks a person."""

import sys
import tempfile
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import ToolRetryMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool

from runtime_persist import Budget, Runtime
from runtime_persist.adapters.middleware import JournalMiddleware
from runtime_persist.errors import BudgetExhausted

CURRENCIES = ("EUR", "GBP", "JPY")
looked_up: list[str] = []


class FakeModel(BaseChatModel):
    """Asks for one rate after the other, and never has enough."""

    @property
    def _llm_type(self) -> str:
        return "fake"

    def bind_tools(self, tools: Any, **_: Any) -> "FakeModel":  # noqa: ARG002
        return self

    def _generate(self, messages: Any, *_: Any, **__: Any) -> ChatResult:
        rates = [message.text for message in messages if message.type == "tool"]
        usage = {"input_tokens": 80, "output_tokens": 20, "total_tokens": 100}
        said = AIMessage(content=", ".join(rates), usage_metadata=usage)
        if len(rates) < len(CURRENCIES):
            call = {"name": "rate", "args": {"currency": CURRENCIES[len(rates)]}, "id": f"call-{len(rates)}"}
            said = AIMessage(content="", tool_calls=[call], usage_metadata=usage)
        return ChatResult(generations=[ChatGeneration(message=said)])


@tool
def rate(currency: str) -> str:
    """Look up a rate of exchange."""
    looked_up.append(currency)
    if looked_up.count("GBP") == 1 and currency == "GBP":
        message = "the exchange does not answer"
        raise ConnectionError(message)
    return f"{currency} 1.{len(looked_up)}"


def main(url: str) -> None:
    journal = JournalMiddleware(tools={"rate": "retry"})  # reading changes nothing: it may be asked again
    agent = create_agent(FakeModel(), [rate], middleware=[ToolRetryMiddleware(initial_delay=0, jitter=False), journal])
    config = {"configurable": {"thread_id": "rates"}}
    with Runtime.open(url) as runtime:
        durable = runtime.bind(agent, name="clerk", budget=Budget(loops=3, tool_calls=9, tokens=1_000))
        try:
            durable.invoke({"messages": [("user", "all the rates, please")]}, config)
        except BudgetExhausted as spent:
            print(f"{spent.details['consumed']} of {spent.details['limit']} {spent.details['budget']} are spent")
        (run,) = runtime.runs.list(thread_id="rates")
        print(run.shown, "-", runtime.runs.questions(run.run_id)[0].kind.value)
    with Runtime.open(url) as runtime:  # another process, another day: a person raises it
        durable = runtime.bind(agent, name="clerk")
        print(runtime.runs.resume(run.run_id, Budget(loops=4), by="Ada"))
        print(durable.invoke(None, config)["messages"][-1].text)
        spent = runtime.runs.get(run.run_id).budget
        print("loops:", spent["loops"].consumed, "- tokens:", spent["tokens"].consumed)
        print("tool calls:", spent["tool_calls"].consumed, "- looked up:", " ".join(looked_up))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(sys.argv[1] if len(sys.argv) > 1 else f"sqlite:///{Path(folder) / 'agents.db'}")
