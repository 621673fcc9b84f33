"""What would not come back equal is refused at the step, by channel, path and type, before anything is written (G5)."""

import collections
import dataclasses
import datetime as dt
import threading

import numpy as np
import pytest
from langchain_core.messages import HumanMessage, ToolMessage
from langgraph.graph import START, StateGraph
from langgraph.types import Send
from pydantic import BaseModel

from runtime_persist import operation
from runtime_persist.adapters.workflow import ValueSerializer, register_type
from runtime_persist.errors import InvalidInput, OperationUnsupported, UnsupportedValue, UntrustedType
from tests.values import kinds, local, programs
from tests.values.graphs import at, keeps

LOCK = threading.Lock()


class Words(dict): ...


class Name(str):
    __slots__ = ()


class Client:
    def __init__(self, url: str) -> None:
        self.url = url


class Zone(dt.tzinfo):
    def utcoffset(self, _):
        return dt.timedelta(0)


def itself():
    found = []
    found.append(found)
    return found


def deep():
    found = None
    for _ in range(1_000):
        found = kinds.Plain(found)
    return found


REFUSED = {
    "a lock": (LOCK, "", "_thread.lock"),
    "a lock deep in plain data": ({"a": [1, {"b": LOCK}]}, "['a'][1]['b']", "_thread.lock"),
    "an object in a Send": (Send("n", {"o": object()}), ".arg['o']", "object"),
    "a tool's artifact": (
        [HumanMessage("a"), ToolMessage("x", tool_call_id="1", artifact=LOCK)],
        "[1].artifact",
        "_thread.lock",
    ),
    "a field of a field": (kinds.Order(lines=[kinds.Plain(LOCK)]), ".lines[0].a", "_thread.lock"),
    "a dict subclass": ([Words(a=1)], "[0]", "tests.values.test_refused.Words"),
    "a str subclass": ([Name("a")], "[0]", "tests.values.test_refused.Name"),
    "a str subclass as key": ({Name("a"): 1}, "[key <Name>]", "tests.values.test_refused.Name"),
    "a defaultdict with a function": (collections.defaultdict(lambda: 1), "", "collections.defaultdict"),
    "a function": ([len], "[0]", "builtin_function_or_method"),
    "a class": ([int], "[0]", "type"),
    "a module": ([threading], "[0]", "module"),
    "an exception": ([ValueError("x")], "[0]", "ValueError"),
    "a memory view": ([memoryview(b"x")], "[0]", "memoryview"),
    "a zone of its own": (dt.datetime(2024, 1, 1, tzinfo=Zone()), "", "datetime.datetime"),
    "an array of objects": (np.array([None]), "", "numpy.ndarray"),
    "a list that holds itself": (itself(), "", "list"),
    "objects nested too deep": (deep(), None, "tests.values.kinds.Plain"),
}


@pytest.mark.parametrize("level", ["L0", "L1"])
def test_what_cannot_be_stored_is_named_and_the_state_before_is_intact(runtime, level):
    for name, (value, path, kind) in REFUSED.items():
        graph = keeps(lambda value=value: value, checkpointer=runtime.checkpointer)
        target = runtime.bind(graph, name="keeps") if level == "L1" else graph
        with pytest.raises(UnsupportedValue) as caught:
            target.invoke({}, at(name))
        assert caught.value.details["channel"] == "value", name
        assert caught.value.details["type"] == kind
        if path is not None:
            assert caught.value.details["path"] == path
            assert f"value{path} is a {kind}" in str(caught.value)
        state = graph.get_state(at(name))
        assert state.values == {"before": 1}, name
        assert state.next == ("second",)


def test_a_refused_value_writes_nothing(runtime, raw):
    graph = keeps(lambda: 1, checkpointer=runtime.checkpointer)
    graph.invoke({}, at("t"))
    before = raw.dump()
    with pytest.raises(UnsupportedValue):
        graph.update_state(at("t"), {"value": {"a": 1, "lock": LOCK}}, as_node="second")
    assert raw.dump() == before


def test_effects_that_were_journalled_stay_known_after_a_refused_value(runtime):
    calls = []
    values = [LOCK, "fine"]

    @operation(name="charge")
    def charge():
        calls.append(1)
        return "charged"

    def node():
        charge()
        return values.pop(0)

    bound = runtime.bind(keeps(node), name="keeps")
    with pytest.raises(UnsupportedValue):
        bound.invoke({}, at("t"))
    assert bound.invoke(None, at("t"))["value"] == "fine"
    assert calls == [1]


def test_an_operations_arguments_and_result_are_refused_by_path_and_type(runtime):
    @operation(name="takes")
    def takes(given):
        return 1

    @operation(name="gives")
    def gives():
        return {"a": [LOCK]}

    for call, where in ((lambda: takes({"a": LOCK}), "['given']['a']"), (gives, "['a'][0]")):
        with pytest.raises(OperationUnsupported) as caught:
            runtime.bind(keeps(call), name="keeps").invoke({}, at(where))
        assert f"{where} is a _thread.lock" in str(caught.value)


def test_a_registered_class_is_stored_by_its_functions(runtime):
    register_type(Client, dump=lambda client: client.url, load=Client)
    graph = keeps(lambda: [Client("http://a")], checkpointer=runtime.checkpointer)
    graph.invoke({}, at("t"))
    (found,) = graph.get_state(at("t")).values["value"]
    assert type(found) is Client
    assert found.url == "http://a"


@pytest.mark.parametrize("value", [Words(a=(1,)), Name("a")], ids=["dict", "str"])
def test_registering_a_subclass_of_a_built_in_type_is_one_call(value):
    register_type(type(value))
    serde = ValueSerializer()
    found = serde.loads_typed(serde.dumps_typed([value]))[0]
    assert type(found) is type(value)
    assert found == value


def test_register_type_is_a_decorator():
    @register_type
    @dataclasses.dataclass
    class Here:
        a: int

    serde = ValueSerializer(strict="registered")
    assert serde.loads_typed(serde.dumps_typed(Here(1))) == Here(1)


def test_register_type_says_what_a_class_needs():
    with pytest.raises(InvalidInput, match="dump="):
        register_type(Client)
    with pytest.raises(InvalidInput, match="together"):
        register_type(Client, dump=str)
    with pytest.raises(InvalidInput, match="takes a class"):
        register_type("Client")


def test_strict_registered_refuses_classes_that_are_not_registered(open_runtime):
    runtime = open_runtime(strict="registered")
    graph = keeps(lambda: kinds.Plain(1), checkpointer=runtime.checkpointer)
    with pytest.raises(UnsupportedValue, match="not registered"):
        graph.invoke({}, at("t"))
    register_type(kinds.Plain)
    assert graph.invoke({}, at("u"))["value"] == kinds.Plain(1)
    assert graph.get_state(at("u")).values["value"] == kinds.Plain(1)


def test_strict_registered_allows_what_the_bound_graphs_schemas_name(open_runtime):
    bound = open_runtime(strict="registered").bind(local.made(), name="local")
    bound.invoke({}, at("local"))
    assert bound.get_state(at("local")).values["thing"].a == 1


def test_a_class_made_in_a_function_is_loaded_by_a_new_process_whose_bound_graph_names_it(runtime, shared_url, fork):
    runtime.bind(local.made(), name="local").invoke({}, at("local"))
    assert fork(programs.loads_local, shared_url, bound=True).result().endswith("Thing(a=1)")


def test_a_class_made_in_a_function_is_an_error_in_a_new_process_that_does_not_know_it(
    runtime, shared_url, fork, caplog
):
    graph = local.made(checkpointer=runtime.checkpointer)
    graph.invoke({}, at("local"))
    assert graph.get_state(at("local")).values["thing"].a == 1
    assert "can only be loaded by this process" in caplog.text
    _, code, message, _ = fork(programs.loads_local, shared_url, bound=False).outcome()
    assert code == UntrustedType.code
    assert "'thing'" in message
    assert "Thing" in message


def test_an_input_of_a_class_made_in_a_function_is_kept_as_its_fields(runtime):
    class Input(BaseModel):
        before: int
        value: int | None = None

    builder = StateGraph(Input)
    builder.add_node("only", lambda state: {"value": state.before + 1})
    builder.add_edge(START, "only")
    graph = builder.compile(checkpointer=runtime.checkpointer)
    assert graph.invoke(Input(before=1), at("t"))["value"] == 2
    first = list(runtime.checkpointer.list(at("t")))[-1]
    assert first.checkpoint["channel_values"]["__start__"] == {"before": 1}


def test_a_class_made_in_a_function_that_no_schema_names_is_refused_by_a_bound_graph(runtime):
    class Other(BaseModel):
        a: int

    with pytest.raises(UnsupportedValue, match="inside a function"):
        runtime.bind(keeps(lambda: Other(a=1)), name="keeps").invoke({}, at("t"))


@pytest.mark.parametrize("options", [{"strict": "no"}, {"metadata_keys": "run"}, {"max_value_bytes": 0}], ids=str)
def test_unusable_options_are_refused(open_runtime, open_saver, options):
    for opens in (open_runtime, open_saver):
        with pytest.raises(InvalidInput):
            opens(**options)
