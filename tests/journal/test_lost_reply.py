"""A reply that is lost on its way is looked up: the call it stands for is made once, whatever its policy."""

import threading
from typing import TypedDict
from urllib.parse import urlsplit

import pytest
from langgraph.graph import START, StateGraph

from runtime_persist import Runtime
from runtime_persist.testing.proxy import PostgresProxy
from tests.support.journal import Outside


class State(TypedDict):
    done: dict


@pytest.mark.parametrize("command", ["begin_operation", "complete_operation"])
@pytest.mark.parametrize("policy", ["ask", "retry", "fail"])
def test_a_call_whose_journal_reply_was_lost_is_made_exactly_once(postgres_dsn, command, policy):
    outside = Outside()
    charge = outside.charge(on_unknown=policy)
    graph = StateGraph(State).add_node("pay", lambda _: {"done": charge("order-7")}).add_edge(START, "pay").compile()
    where = urlsplit(postgres_dsn)
    table = {"begin_operation": "INSERT INTO rp_operations", "complete_operation": "UPDATE rp_operations"}[command]
    with PostgresProxy(where.hostname, where.port) as proxy, Runtime.open(proxy.dsn(postgres_dsn)) as runtime:
        durable = runtime.bind(graph, name="shop")
        hold = proxy.hold("after_reply", lambda statement: table in statement.sql)
        reached = []

        def cut():
            reached.append(hold.wait_reached(30))
            hold.drop()

        cutter = threading.Thread(target=cut)
        cutter.start()
        output = durable.invoke({"done": {}}, {"configurable": {"thread_id": "t"}})
        cutter.join()
        assert len(reached) == 1
        assert output["done"]["receipt"] == 1
        assert outside.calls == ["order-7"]
        assert runtime.runs.list(thread_id="t")[0].status == "succeeded"
