"""Where a worker finds its graphs, and what it says when it does not."""

import pytest
from langgraph.pregel import Pregel

from runtime_persist.errors import InvalidInput
from runtime_persist.worker import Worker, load_registry

HERE = "tests.support.graphs_registry"


def test_graphs_and_factories_are_both_taken():
    graphs = load_registry(f"{HERE}:registry")
    assert set(graphs) == {"hello", "asking"}
    assert all(isinstance(graph, Pregel) for graph in graphs.values())


@pytest.mark.parametrize(
    ("reference", "named"),
    [
        ("registry", "module:attribute"),
        (":registry", "module:attribute"),
        (f"{HERE}:", "module:attribute"),
        ("no_such_module:registry", "no_such_module"),
        (f"{HERE}:missing", "missing"),
        (f"{HERE}:empty", "non-empty"),
        (f"{HERE}:no_mapping", "list"),
        (f"{HERE}:not_compiled", "'bad'"),
    ],
)
def test_what_cannot_be_loaded_is_named(reference, named):
    with pytest.raises(InvalidInput, match=named):
        load_registry(reference)


def test_a_module_the_application_misses_is_not_hidden(tmp_path, monkeypatch):
    (tmp_path / "app_that_breaks.py").write_text("import a_module_that_is_not_there\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="a_module_that_is_not_there"):
        load_registry("app_that_breaks:registry")


def test_a_worker_needs_a_slot(runtime):
    with pytest.raises(InvalidInput, match="slot"):
        Worker(runtime, load_registry(f"{HERE}:registry"), slots=0)
