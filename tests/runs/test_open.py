"""Runtime.open, bind and runs.start: what cannot be used is refused by name, before anything is written."""

import pytest

from runtime_persist import Runtime
from runtime_persist.errors import (
    Closed,
    DatabaseUnavailable,
    InvalidInput,
    InvalidThreadId,
    InvalidUrl,
    OperationNotFound,
    RunNotFound,
    RuntimePersistError,
    SchemaMissing,
    UnknownGraph,
)
from tests.support import programs
from tests.support.checkpoints import at, new_checkpoint
from tests.support.graphs import State, chain, config, says

BAD_URLS = {
    "": "empty",
    "mysql://host/db": "mysql",
    "sqlite://host/path": "sqlite:///",
    "sqlite:///": "no file",
    "sqlite:agents.db": "sqlite:///path",
    "sqlite:///a.db?mode=ro": "'mode'",
    "sqlite:///a.db?timeout=soon": "soon",
    "sqlite:////no/such/folder/a.db": "/no/such/folder",
    "postgresql://host/db?colour=red": "'colour'",
    "postgresql://host:port/db": "port",
}


@pytest.mark.parametrize(("url", "named"), BAD_URLS.items(), ids=BAD_URLS)
def test_a_url_that_cannot_be_used_is_refused_by_what_is_wrong(url, named, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidUrl, match=named):
        Runtime.open(url)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"lease_ttl": 0}, "lease_ttl"),
        ({"lease_ttl": 0.1}, "lease_ttl"),
        ({"lease_ttl": 86_401}, "lease_ttl"),
        ({"lease_ttl": float("nan")}, "lease_ttl"),
        ({"space": ""}, "space"),
        ({"space": "a\0b"}, "space"),
        ({"space": 7}, "space"),
    ],
)
def test_options_that_cannot_be_used_are_refused_by_name(tmp_path, options, named):
    with pytest.raises(InvalidInput, match=named):
        Runtime.open(tmp_path / "agents.db", **options)
    assert list(tmp_path.iterdir()) == []


def test_unknown_options_are_pythons_to_refuse(tmp_path):
    with pytest.raises(TypeError, match="leese_ttl"):
        Runtime.open(tmp_path / "agents.db", leese_ttl=3)


def test_a_file_path_is_a_url_and_memory_is_private(tmp_path):
    with Runtime.open(tmp_path / "agents.db") as runtime:
        assert runtime.runs.list() == []
    assert (tmp_path / "agents.db").exists()
    with Runtime.open("sqlite:///:memory:") as one, Runtime.open("sqlite:///:memory:") as two:
        one.lease(thread_id="t").release()
        assert (len(one.runs.list()), len(two.runs.list())) == (1, 0)


def test_without_auto_setup_missing_tables_are_told_at_the_first_use(empty_url):
    with Runtime.open(empty_url, auto_setup=False) as runtime, pytest.raises(SchemaMissing, match="db upgrade"):
        runtime.runs.list()


def test_a_server_that_is_not_there_is_told(tmp_path):
    url = f"postgresql://u@localhost/db?host={tmp_path}&connect_timeout=2"
    with pytest.raises(RuntimePersistError) as caught:
        Runtime.open(url)
    assert isinstance(caught.value, DatabaseUnavailable) or caught.value.kind == "retry"


async def test_closing_twice_is_fine_and_everything_after_it_is_closed(open_runtime, way):
    runtime = open_runtime()
    graph = runtime.bind(chain({"node": says("x")}), name="g")
    for _ in range(2):
        await (runtime.aclose() if way.asynchronous else _closed(runtime))
    for call in (
        way(runtime.checkpointer, "get_tuple", at()),
        way(runtime.runs, "list"),
        way(graph, "invoke", {"log": []}, config()),
    ):
        with pytest.raises(Closed):
            await call


async def _closed(runtime):
    runtime.close()


async def test_spaces_are_worlds_of_their_own(open_runtime, way):
    ours, theirs = open_runtime(space="ours"), open_runtime(space="theirs")
    graph = ours.bind(chain({"node": says("x")}), name="g")
    await way(graph, "invoke", {"log": []}, config())
    (run,) = await way(ours.runs, "list")
    assert await way(theirs.runs, "list") == []
    with pytest.raises(RunNotFound):
        await way(theirs.runs, "get", run.run_id)
    with pytest.raises(UnknownGraph):
        await way(theirs.runs, "start", "g", {})
    assert await way(theirs.checkpointer, "get_tuple", at()) is None
    await way(theirs.checkpointer, "put", at(), new_checkpoint({"a": 1}), {}, {"a": "1"})
    assert (await way(graph, "get_state", config())).values["log"] == ["x"]


def test_binding_refuses_what_is_not_a_compiled_graph(runtime):
    from langgraph.graph import StateGraph

    for wrong in (StateGraph(State), None, lambda state: state):
        with pytest.raises(InvalidInput, match="compile"):
            runtime.bind(wrong, name="g")
    for name in ("", None, "a\0b"):
        with pytest.raises(InvalidInput, match="name"):
            runtime.bind(chain({"node": says("x")}), name=name)


def test_binding_leaves_the_graph_as_it_was(runtime):
    graph = chain({"node": says("x")})
    bound = runtime.bind(graph, name="g")
    assert graph.checkpointer is None
    assert graph.invoke({"log": []})["log"] == ["x"]
    assert bound.run_name == "g"
    assert set(bound.get_graph().nodes) == {"__start__", "node", "__end__"}


@pytest.mark.parametrize("thread_id", ["", "a\0b", "x" * 1_025, b"t"], ids=["empty", "NUL", "long", "bytes"])
async def test_thread_ids_are_checked_everywhere_before_a_write(runtime, way, raw, thread_id):
    graph = runtime.bind(chain({"node": says("x")}), name="g")
    before = raw.dump()
    calls = [
        way(graph, "invoke", {"log": []}, config(thread_id)),
        way(runtime.runs, "start", "g", {}, thread_id=thread_id),
        way(runtime, "lease", thread_id=thread_id),
        way(runtime.runs, "list", thread_id=thread_id),
    ]
    for call in calls:
        with pytest.raises(InvalidThreadId):
            await call
    with pytest.raises(InvalidThreadId):
        await way(graph, "invoke", {"log": []}, {"configurable": {}})
    assert raw.dump() == before


async def test_what_does_not_exist_is_told(runtime, way):
    for call in (
        way(runtime.runs, "get", "nobody"),
        way(runtime.runs, "cancel", "nobody"),
        way(runtime.runs, "result", "nobody", timeout=0),
        way(runtime.runs, "question", "nobody"),
        way(runtime.runs, "answer", "nobody", "x"),
    ):
        with pytest.raises(RunNotFound, match="nobody"):
            await call
    with pytest.raises(OperationNotFound, match="nothing"):
        await way(runtime.runs, "resolve", "nothing", happened=True)
    with pytest.raises(InvalidInput, match="limit"):
        await way(runtime.runs, "list", limit=-1)


def test_a_forked_child_is_told_to_open_its_own(shared_url, fork):
    assert fork(programs.forks_after_opening, shared_url).result() == ("CLOSED", "CLOSED", 0)
