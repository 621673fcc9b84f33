"""Values that were changed, lost or refused on the way (G2 to G6). What is round-tripped is in tests/values/ too."""

import json
import signal
import threading
from typing import Annotated, TypedDict

import pytest
from langchain_core.messages import HumanMessage, ToolMessage
from langgraph.graph import START, StateGraph
from langgraph.types import Send
from pydantic import BaseModel

from runtime_persist import operation
from runtime_persist.adapters.workflow import RawObject, RawSerializer, WorkflowCheckpointAdapter
from runtime_persist.errors import OperationFailed, RunFailed, UnsupportedValue, UntrustedType
from runtime_persist.worker import Worker
from tests.support.graphs import chain
from tests.support.leases import run_out
from tests.support.stored import stored
from tests.user_pains import programs_values
from tests.values import kinds, local, programs
from tests.values.graphs import at, keeps

CUT = "a\ud800b"
LOCK = threading.Lock()


# --- G2 ---------------------------------------------------------------------------------------------------------------


def test_a_text_cut_in_an_emoji_comes_back_and_is_the_same_content_when_stored_again(saver, raw):
    """G2: as message text, as dict key, and in thread metadata; the second store adds no content."""
    large = {CUT: [HumanMessage(CUT * 10_000, id="1"), {CUT: CUT}]}
    addresses = []
    for thread_id in ("t", "u"):
        graph = keeps(lambda: large, checkpointer=saver)
        graph.invoke({}, {**at(thread_id), "metadata": {"note": CUT}})
        assert graph.get_state(at(thread_id)).values["value"] == large
        assert saver.get_tuple(at(thread_id)).metadata["note"] == CUT
        assert [one.config["configurable"]["thread_id"] for one in saver.list(at(thread_id), filter={"note": CUT})]
        addresses.append(raw.rows("SELECT owner, address FROM rp_blobs ORDER BY address"))
    assert addresses[0]
    assert addresses[1] == addresses[0]


# --- G3 ---------------------------------------------------------------------------------------------------------------


def test_summer_time_is_the_same_in_a_new_process(shared_url, fork):
    """G3: zone and fold decide which of the two 02:30 of that night it was; every other kind is in tests/values/."""
    with WorkflowCheckpointAdapter.from_conn_string(shared_url) as saver:
        for name, fold in (("first", 0), ("again", 1)):
            keeps(lambda fold=fold: kinds.AGAIN.replace(fold=fold), checkpointer=saver).invoke({}, at(name))
    assert fork(programs_values.hour_later, shared_url, "first").result() == "2024-10-27T01:30:00+00:00"
    assert fork(programs_values.hour_later, shared_url, "again").result() == "2024-10-27T02:30:00+00:00"


def test_a_local_class_is_refused_at_store_time_by_channel_and_type_or_comes_back(runtime, open_runtime):
    """G3: a bound graph knows the classes its schema names; strict="registered" knows what was registered."""

    class Other(BaseModel):
        a: int

    bound = runtime.bind(local.made(), name="local")
    bound.invoke({}, at("local"))
    found = bound.get_state(at("local")).values["thing"]
    assert type(found).__qualname__.endswith("<locals>.Thing")
    assert found.a == 1
    strict = open_runtime(strict="registered")
    for refusing in (
        runtime.bind(keeps(lambda: Other(a=1)), name="keeps"),
        keeps(lambda: Other(a=1), checkpointer=strict.checkpointer),
    ):
        with pytest.raises(UnsupportedValue) as caught:
            refusing.invoke({}, at("other"))
        assert caught.value.details["channel"] == "value"
        assert caught.value.details["type"].endswith("<locals>.Other")


# --- G4 ---------------------------------------------------------------------------------------------------------------

SHOP = """
import dataclasses, enum, typing
from pydantic import BaseModel, SecretStr
class Kind(enum.Enum):
    RED = "r"
class Line(BaseModel):
    n: int
class Order(BaseModel):
    lines: list[Line]
    kind: Kind
    pin: SecretStr
@dataclasses.dataclass
class Data:
    a: tuple
class Pair(typing.NamedTuple):
    a: int
VALUES = {
    "model": Order(lines=[Line(n=1)], kind=Kind.RED, pin=SecretStr("hunter2")), "dataclass": Data((1, 2)),
    "enum": {Kind.RED: [Kind.RED]}, "namedtuple": [Pair(1)],
}
"""
KIND = RawObject("shop.Kind", "enum", {"name": "RED", "value": "r"})


@pytest.fixture
def gone(shared_url, fork, tmp_path):
    """Values of a module that this process does not have, one thread a value."""
    (tmp_path / "shop.py").write_text(SHOP)
    fork(programs.stores, shared_url, str(tmp_path)).result()


def test_the_raw_view_shows_values_whose_classes_are_gone(shared_url, gone):
    """G4: it is asked for (serde=RawSerializer()); otherwise they are an error. Nothing can be stored through it."""
    with (
        WorkflowCheckpointAdapter.from_conn_string(shared_url) as saver,
        pytest.raises(UntrustedType, match=r"'value' of checkpoint .*shop\.Line.*register_upgrade"),
    ):
        saver.get_tuple(at("model"))
    with WorkflowCheckpointAdapter.from_conn_string(shared_url, serde=RawSerializer()) as saver:
        found = {
            name: saver.get_tuple(at(name)).checkpoint["channel_values"]["value"]
            for name in ("model", "dataclass", "enum", "namedtuple")
        }
        with pytest.raises(UnsupportedValue, match="for reading only"):
            keeps(lambda: 1, checkpointer=saver).invoke({}, at("new"))
        assert saver.get_tuple(at("new")) is None
    assert found["model"].type == "shop.Order"
    assert found["model"].fields["lines"] == [RawObject("shop.Line", "model", {"n": 1})]
    assert found["model"].fields["kind"] == KIND
    assert found["model"].fields["pin"].get_secret_value() == "hunter2"
    assert "hunter2" not in repr(found)
    assert found["dataclass"] == RawObject("shop.Data", "dataclass", {"a": (1, 2)})
    assert found["enum"] == {KIND: [KIND]}
    assert found["namedtuple"] == [RawObject("shop.Pair", "namedtuple", {"a": 1})]


def test_the_inspector_shows_the_fields_and_the_bytes_of_values_whose_classes_are_gone(shared_url, gone, cli):
    """G4: ``thread show --channel`` needs no class; ``--bytes`` gives what is stored."""
    shown = json.loads(cli("thread", "show", "model", "--channel", "value").stdout)
    assert shown == {
        "type": "shop.Order",
        "fields": {
            "lines": [{"type": "shop.Line", "fields": {"n": 1}}],
            "kind": {"type": "shop.Kind", "fields": {"name": "RED", "value": "r"}},
            "pin": "**********",
        },
    }
    data = cli("thread", "show", "model", "--channel", "value", "--bytes").stdout_bytes
    assert RawSerializer().loads_typed(("msgpack-rp", data)).fields["lines"][0].fields == {"n": 1}
    listed = json.loads(cli("thread", "show", "model", "--json").stdout)
    sizes = {one["channel"]: one["bytes"] for one in listed["namespaces"][0]["channels"]}
    assert sizes["value"] == len(data)


# --- G5 ---------------------------------------------------------------------------------------------------------------

REFUSED = {
    "a lock": ({"v": LOCK}, "['v']", "_thread.lock"),
    "a module": ([threading], "[0]", "module"),
    "an object in a Send": (Send("n", {"o": object()}), ".arg['o']", "object"),
    "a tool artifact": ([ToolMessage("x", tool_call_id="1", artifact=LOCK)], "[0].artifact", "_thread.lock"),
}


def charged(calls, values):
    """A journalled call, then the next of these values."""

    @operation(name="charge")
    def charge():
        calls.append(1)

    def make():
        charge()
        return values.pop(0)

    return make


@pytest.mark.parametrize("durability", ["sync", "async"])
async def test_an_object_in_the_state_is_refused_by_channel_path_and_type_at_its_step(runtime, way, durability):
    """G5: the state before is intact, the node is next, effects that were journalled stay known; 2**70 is stored."""
    for name, (value, path, kind) in REFUSED.items():
        calls, values = [], [value, 2**70]
        bound = runtime.bind(keeps(charged(calls, values)), name="keeps")
        with pytest.raises(UnsupportedValue) as caught:
            await way(bound, "invoke", {}, at(name), durability=durability)
        assert {key: caught.value.details[key] for key in ("channel", "path", "type")} == {
            "channel": "value", "path": path, "type": kind,
        }  # fmt: skip
        state = await way(bound, "get_state", at(name))
        assert state.values == {"before": 1}
        assert state.next == ("second",)
        assert (await way(bound, "invoke", None, at(name), durability=durability))["value"] == 2**70
        assert calls == [1]


class Sent(TypedDict, total=False):
    done: Annotated[list[str], lambda old, new: old + new]


def test_an_object_sent_to_a_node_is_refused_at_the_step_that_sends_it(runtime):
    """G5: the error names what is sent and the path in it, not only that something could not be stored."""
    builder = StateGraph(Sent)
    builder.add_node("first", lambda _: {"done": ["first"]})
    builder.add_node("n", lambda _: {"done": ["n"]})
    builder.add_edge(START, "first")
    builder.add_conditional_edges("first", lambda _: [Send("n", {"o": object()})], ["n"])
    graph = builder.compile(checkpointer=runtime.checkpointer)
    with pytest.raises(UnsupportedValue) as caught:
        graph.invoke({}, at("t"))
    assert caught.value.details["path"].endswith(".arg['o']")
    assert caught.value.details["type"] == "object"
    state = graph.get_state(at("t"))
    assert state.values == {"done": []}
    assert state.next == ("first",)


class Speechless(Exception):
    """An exception that cannot even be shown."""

    def __str__(self) -> str:
        raise ZeroDivisionError

    __repr__ = __str__


# --- G6 ---------------------------------------------------------------------------------------------------------------


def test_an_exception_with_its_own_constructor_is_read_back_after_a_crash(runtime, shared_url, fork, raw):
    """G6: the journal has its type, its text once and its code; nothing is pickled; the run ends as failed."""
    run = runtime.bind(programs_values.charges(), name="g") and runtime.runs.start("g", {"log": []}, thread_id="t")
    first = fork(programs_values.refused, shared_url)
    first.until("journalled")
    first.send(signal.SIGKILL)
    run_out(raw)
    Worker(runtime, {"g": programs_values.charges()}, poll_seconds=0.02).run(until_idle=True)
    with pytest.raises(RunFailed):
        run.result()
    record = run.record()
    assert (record.status, record.error_code) == ("failed", OperationFailed.code)
    assert record.error_summary.count("no money!") == 1
    for table in ("rp_operations", "rp_operation_tries"):
        row = raw.one(f"SELECT status, error_type, error_text FROM {table}")
        assert row == {"status": "failed", "error_type": "Refused", "error_text": "no money! (code 402)"}
    held = stored(raw, shared_url)
    assert b"programs_values" not in held
    assert b"\x80\x04\x95" not in held
    assert b"\x80\x05\x95" not in held


REFUSED_WITH = {"NUL": "a\0b", "cut emoji": CUT, "long": "x" * 100_000}
ERRORS = {name: programs_values.Refused(402, text) for name, text in REFUSED_WITH.items()} | {"no text": Speechless()}


@pytest.mark.parametrize("name", ERRORS)
async def test_whatever_the_text_of_an_exception_is_the_run_ends(runtime, way, raw, name):
    """G6: a text that a database cannot hold does not leave the run or the operation open."""
    error = ERRORS[name]

    @operation(name="charge")
    def charge():
        raise error

    @operation(name="charge")
    async def acharge():
        raise error

    async def anode(_):
        await acharge()

    bound = runtime.bind(chain({"node": anode if way.asynchronous else lambda _: charge()}), name="g")
    with pytest.raises(type(error)):
        await way(bound, "invoke", {"log": []}, at("t"))
    assert raw.value("SELECT status FROM rp_runs") == "failed"
    assert raw.value("SELECT status FROM rp_operations") == "failed"
    (found,) = (task.error for task in (await way(bound, "get_state", at("t"))).tasks)
    assert found.startswith(f"{type(error).__name__}(")
