"""Loading imports nothing and calls nothing but constructors of allowed classes, whatever a row says (I1)."""

import sys

import pytest
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from runtime_persist import Runtime
from runtime_persist.adapters.workflow import WorkflowCheckpointAdapter
from runtime_persist.engine import run
from runtime_persist.errors import UntrustedType
from runtime_persist.inspector import load_bundle
from runtime_persist.inspector.render import bundle as render
from tests.values.crafted import CRAFTED, Forger
from tests.values.graphs import at, keeps


def test_forged_values_are_typed_errors_that_name_channel_and_checkpoint(shared_url, marker, monkeypatch):
    monkeypatch.delenv("LANGGRAPH_STRICT_MSGPACK", raising=False)
    with WorkflowCheckpointAdapter.from_conn_string(shared_url, serde=Forger()) as forger:
        for name in CRAFTED:
            keeps(lambda name=name: name, checkpointer=forger).invoke({}, at(name))
    with WorkflowCheckpointAdapter.from_conn_string(shared_url) as saver:
        for name, (_, kind) in CRAFTED.items():
            for reading in (lambda name=name: saver.get_tuple(at(name)), lambda name=name: list(saver.list(at(name)))):
                with pytest.raises(kind) as caught:
                    reading()
                assert type(caught.value) is kind, name
                assert caught.value.details["channel"] == "value", name
                assert caught.value.details["checkpoint_id"] in str(caught.value)
                assert caught.value.kind == "corrupt"
    assert "pmod" not in sys.modules
    assert not marker.exists()
    assert not (marker.parent / "ran").exists()


def test_the_inspector_shows_a_run_with_a_forged_value_and_imports_nothing(shared_url, marker):
    name = "own model"
    with Runtime.open(shared_url, serde=Forger()) as forger:
        forger.bind(keeps(lambda: name), name="keeps").invoke({}, at("t"))
        (info,) = forger.runs.list()
    with Runtime.open(shared_url) as runtime:
        assert render(run(load_bundle(runtime.engine, runtime.checkpointer.serde, info.run_id))) is not None
    assert "pmod" not in sys.modules
    assert not marker.exists()


def test_an_array_is_not_loaded_where_numpy_is_not_imported(saver, monkeypatch):
    import numpy as np

    stored = [saver.serde.dumps_typed(np.arange(3)), JsonPlusSerializer().dumps_typed(np.arange(3))]
    monkeypatch.delitem(sys.modules, "numpy")
    for data in stored:
        with pytest.raises(UntrustedType, match="numpy is not imported"):
            saver.serde.loads_typed(data)


def test_plain_json_of_older_threads_is_loaded(saver):
    assert saver.serde.loads_typed(("json", b'{"a": [1, null]}')) == {"a": [1, None]}
