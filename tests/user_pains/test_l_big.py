"""Values of 5, 20 and 300 MB, and one byte too many (L1); tests/values/test_sizes.py has the cap on every path."""

import tracemalloc

import pytest
from langgraph.graph import START, StateGraph
from langgraph.types import RetryPolicy

from runtime_persist.errors import ValueTooLarge
from tests.user_pains import programs_values
from tests.values.graphs import State, at, keeps

MB = 1_000_000
LOOK_BYTES_MAX = 2 * MB
BUFFERS_BYTES_MAX = 64 * MB
"""The cache of content (32 MiB), a part and a page of content in the driver: however large a value is."""


@pytest.mark.parametrize("level", ["L0", "L1"])
def test_twenty_megabytes_that_do_not_compress_pass_and_another_process_loads_them(runtime, shared_url, fork, level):
    """L1: through a graph's step."""
    graph = keeps(lambda: {"pdf": programs_values.big(20 * MB)}, checkpointer=runtime.checkpointer)
    target = runtime.bind(graph, name="keeps") if level == "L1" else graph
    assert len(target.invoke({}, at("t"))["value"]["pdf"]) == 20 * MB
    _, same = fork(programs_values.loads_big, shared_url, 20 * MB).result()
    assert same


def retried(value, ran, **options):
    """A node with a retry policy that returns a value."""

    def node(_):
        ran.append(1)
        return {"value": value}

    builder = StateGraph(State)
    builder.add_node("only", node, retry_policy=RetryPolicy(max_attempts=3, retry_on=Exception))
    builder.add_edge(START, "only")
    return builder.compile(**options)


@pytest.mark.parametrize("level", ["L0", "L1"])
async def test_one_byte_over_the_cap_is_one_typed_error_before_anything_of_it_is_written(
    open_runtime, raw_of, way, level
):
    """L1: with size and cap; nothing is tried again, and the state before is intact."""
    runtime, ran = open_runtime(max_value_bytes=MB), []
    graph = retried(bytes(MB + 1), ran, checkpointer=runtime.checkpointer)
    target = runtime.bind(graph, name="g") if level == "L1" else graph
    with pytest.raises(ValueTooLarge) as caught:
        await way(target, "invoke", {"before": 1}, at("t"))
    assert {key: caught.value.details[key] for key in ("channel", "size", "max_bytes")} == {
        "channel": "value",
        "size": MB + 1,
        "max_bytes": MB,
    }
    assert "1,000,001 bytes" in str(caught.value)
    assert "max_value_bytes=1,000,000" in str(caught.value)
    assert ran == [1]
    state = await way(graph, "get_state", at("t"))
    assert (state.values, state.next) == ({"before": 1}, ("only",))
    raw = raw_of(runtime)
    assert raw.value("SELECT count(*) FROM rp_blobs") == 0
    assert raw.value("SELECT count(*) FROM rp_writes WHERE channel = 'value'") == 0


async def test_a_question_over_the_cap_is_such_an_error_too(open_runtime, way):
    """L1: a run is never left waiting for a question that could not be stored."""
    runtime = open_runtime(max_value_bytes=MB)
    bound = runtime.bind(programs_values.questioner(MB + 1), name="asks")
    with pytest.raises(ValueTooLarge, match="max_value_bytes=1,000,000"):
        await way(bound, "invoke", {"log": []}, at("t"))
    (info,) = runtime.runs.list()
    assert (info.status, info.error_code) == ("failed", ValueTooLarge.code)


def test_a_question_of_five_megabytes_is_answered_by_another_process(runtime, shared_url, fork):
    """L1: the question comes back whole, also to who asks for it later."""
    bound = runtime.bind(programs_values.questioner(5 * MB), name="asks")
    assert len(bound.invoke({"log": []}, at("t"))["__interrupt__"][0].value) == 5 * MB
    (info,) = runtime.runs.list()
    assert len(str(runtime.runs.question(info.run_id))) > 5 * MB
    assert fork(programs_values.answers_big, shared_url, 5 * MB).result() == ["yes", 5 * MB]


def test_a_look_at_a_large_thread_loads_nothing_large(runtime, shared_url, cli):
    """L1: a value of 20 MB, metadata and a question of 5 MB: their sizes are shown, their bytes are not read."""
    large = {**at("t"), "metadata": {"note": "x" * (5 * MB)}}
    runtime.bind(keeps(lambda: programs_values.big(20 * MB)), name="keeps").invoke({}, large)
    runtime.bind(programs_values.questioner(5 * MB), name="asks").invoke({"log": []}, at("u"))
    ids = {info.thread_id: info.run_id for info in runtime.runs.list()}
    for arguments, shown in (
        (("thread", "show", "t"), "20,000,000"),
        (("thread", "show", "t", "--json"), "20000000"),
        (("thread", "show", "u"), "__interrupt__"),
        (("inspect", ids["t"]), "succeeded"),
        (("inspect", ids["u"]), "bytes, not loaded"),
        (("inspect", ids["u"], "--json"), "bytes, not loaded"),
        (("run", "list"), "waiting_approval"),
    ):
        cli(*arguments)  # what is loaded once in a process does not count
        tracemalloc.start()
        try:
            before, _ = tracemalloc.get_traced_memory()
            found = cli(*arguments)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert found.exit_code == 0, found.output
        assert shown in found.output, arguments
        assert peak - before < LOOK_BYTES_MAX, arguments


def peaks(shared_url, fork, size):
    """The most memory that storing a value took, and that loading it in another process took, in bytes."""
    storing = fork(programs_values.stores_big, shared_url, size).result()
    loading, same = fork(programs_values.loads_big, shared_url, size).result()
    assert same
    return storing, loading


def test_forty_megabytes_are_stored_and_loaded_with_four_times_their_size_in_memory(shared_url, fork):
    """L1: by real processes, and their memory is what the kernel counted, beside what caches and statements hold."""
    assert max(peaks(shared_url, fork, 40 * MB)) <= 4 * 40 * MB + BUFFERS_BYTES_MAX


@pytest.mark.exhaustive
@pytest.mark.timeout(600)
def test_three_hundred_megabytes_are_stored_and_loaded_with_four_times_their_size_in_memory(shared_url, fork):
    """L1: the value itself included."""
    assert max(peaks(shared_url, fork, 300 * MB)) <= 4 * 300 * MB
