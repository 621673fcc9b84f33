"""Values come back equal, of the same type, through a graph step and in a new process (G2, G3, saver contract T6)."""

import pytest
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from runtime_persist.adapters.workflow import ValueSerializer, WorkflowCheckpointAdapter
from tests.values import kinds, programs
from tests.values.graphs import at, keeps


@pytest.mark.parametrize("name", kinds.VALUES)
def test_a_value_comes_back_equal_and_of_its_type(name):
    serde = ValueSerializer()
    value = kinds.VALUES[name]
    assert kinds.same(serde.loads_typed(serde.dumps_typed(value)), value)


@pytest.mark.parametrize("name", kinds.VALUES)
def test_equal_values_have_equal_bytes(name):
    """So that the same value stored twice is the same content."""
    serde = ValueSerializer()
    first = serde.dumps_typed(kinds.VALUES[name])
    assert serde.dumps_typed(serde.loads_typed(first)) == first


def test_every_value_passes_a_graph_step_and_is_the_same_in_a_new_process(shared_url, fork):
    with WorkflowCheckpointAdapter.from_conn_string(shared_url) as saver:
        for name, value in kinds.VALUES.items():
            graph = keeps(lambda value=value: value, checkpointer=saver)
            output = graph.invoke({}, at(name))
            assert kinds.same(output.get("value"), value)
            assert kinds.same(graph.get_state(at(name)).values.get("value"), value), name
    assert fork(programs.looks, shared_url).result() == []


def test_cut_texts_in_thread_metadata_come_back_on_every_database(saver):
    graph = keeps(lambda: 1, checkpointer=saver)
    graph.invoke({}, {**at("t"), "metadata": {"note": "a\ud800b"}})
    (found, *_) = saver.list(at("t"), filter={"note": "a\ud800b"})
    assert found.metadata["note"] == "a\ud800b"


STOCK = [name for name in kinds.VALUES if name not in {
    "cut emoji", "cut emoji deep and as key", "cut emoji in a message", "ints", "dict keys", "bytearray deep",
    "dict keys that are objects", "int keys over objects", "tuple", "deque with maxlen", "OrderedDict", "defaultdict",
    "defaultdict without factory", "Counter", "Enum", "str and int Enums", "nested Enum", "NamedTuple", "dataclass",
    "dataclass with __post_init__", "model", "model with extra fields", "model with an alias",
    "Fraction, complex, range", "paths",
    "model made without validation", "datetime with zone and fold", "datetime with a named offset",
    "datetime made by pydantic", "text of a message", "tool artifact", "document", "Send, Command, Interrupt",
    "structured array", "numpy scalars", "set of tuples", "arrays",
}]  # fmt: skip
"""What LangGraph's serializer itself keeps."""


@pytest.mark.parametrize("name", STOCK)
def test_what_langgraphs_serializer_wrote_is_loaded(name):
    value = kinds.VALUES[name]
    assert kinds.same(ValueSerializer().loads_typed(JsonPlusSerializer().dumps_typed(value)), value)


def test_what_langgraphs_serializer_wrote_of_messages_and_data_classes_is_loaded_as_those():
    value = [
        kinds.VALUES["messages"],
        kinds.Plain(1),
        kinds.Point(1),
        kinds.Color.RED,
        kinds.Order(lines=[1]),
        kinds.VALUES["Send, Command, Interrupt"][0],
    ]
    assert ValueSerializer().loads_typed(JsonPlusSerializer().dumps_typed(value)) == value


def test_a_set_of_tuples_that_langgraphs_serializer_wrote_is_one_again():
    value = {(1, 2), (3, (4, 5))}
    assert ValueSerializer().loads_typed(JsonPlusSerializer().dumps_typed(value)) == value


def test_langgraphs_serializer_refuses_what_it_would_lose():
    """A database opened with another serializer never gives None for a value."""
    with pytest.raises(NotImplementedError):
        JsonPlusSerializer().loads_typed(ValueSerializer().dumps_typed((1,)))


def test_plain_values_can_be_read_by_langgraphs_serializer():
    value = {"a": [1, "x", None, 2.5]}
    assert JsonPlusSerializer().loads_typed(ValueSerializer().dumps_typed(value)) == value


def test_an_array_that_was_loaded_can_be_changed():
    serde = ValueSerializer()
    found = serde.loads_typed(serde.dumps_typed(kinds.np.zeros(2)))
    found[0] = 1
    assert found[0] == 1


def test_private_attributes_of_models_are_made_anew():
    serde = ValueSerializer()
    order = kinds.Order()
    order._cached = 5
    assert serde.loads_typed(serde.dumps_typed(order))._cached == 3
