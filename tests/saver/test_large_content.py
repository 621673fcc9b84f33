"""The content of a large value is stored ahead of the command that refers to it, in statements of bounded size (L1)."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from runtime_persist.adapters.workflow import WorkflowCheckpointAdapter
from runtime_persist.commands.store_content import StoreContent
from runtime_persist.errors import ThreadDeleted, ValueTooLarge
from runtime_persist.model import limits
from tests.connections.test_lost_connections import END_ALL
from tests.support.checkpoints import Steps, at, new_checkpoint
from tests.user_pains.programs_values import big, stores_until
from tests.values.graphs import keeps

MB = 1_000_000
SIZE = 13 * MB
PARTS = 4


@pytest.fixture
def sent(saver, monkeypatch):
    """The commands that a saver sent, in order."""
    coordinator, commands = saver._core.engine.coordinator, []
    commit = coordinator.commit

    def noted(command):
        commands.append(command)
        return commit(command)

    monkeypatch.setattr(coordinator, "commit", noted)
    return commands


def put(saver, thread_id="t", **values):
    checkpoint = new_checkpoint(values)
    return saver.put(at(thread_id), checkpoint, {"source": "loop", "step": 0}, checkpoint["channel_versions"])


def ahead_of(sent):
    return [command for command in sent if isinstance(command, StoreContent)]


def stored(raw):
    return raw.value("SELECT count(*) FROM rp_blobs")


def unreferenced(raw):
    return [raw.value(f"SELECT count(*) FROM {table}") for table in ("rp_checkpoints", "rp_heads", "rp_writes")]


async def test_a_large_value_goes_in_bounded_statements_ahead_of_its_command(saver, sent, way):
    await Steps(way, saver).put(value=big(SIZE))
    *parts, last = sent
    assert ahead_of(sent) == parts
    assert len(parts) == PARTS
    sizes = [sum(len(blob.content) for blob in part.blobs) for part in parts]
    assert max(sizes) <= limits.CONTENT_PART_BYTES_MAX + limits.CHUNKED_BYTES_MIN
    assert list(last.row.blobs) == []
    assert (await way(saver, "get_tuple", at())).checkpoint["channel_values"] == {"value": big(SIZE)}


def test_what_is_not_large_goes_with_its_command(saver, sent):
    put(saver, value=big(8 * MB))
    (command,) = sent
    assert 8 * MB <= sum(blob.size for blob in command.row.blobs) <= limits.CONTENT_AHEAD_BYTES_MIN


async def test_a_task_s_write_and_the_checkpoint_after_it_send_their_content_once(saver, sent, way):
    graph = keeps(lambda: {"pdf": big(SIZE)}, checkpointer=saver)
    assert (await way(graph, "invoke", {}, at("t")))["value"] == {"pdf": big(SIZE)}
    addresses = [blob.address for command in ahead_of(sent) for blob in command.blobs]
    assert len(addresses) == len(set(addresses)) >= SIZE // limits.CHUNK_BYTES
    assert (await way(graph, "get_state", at("t"))).values["value"] == {"pdf": big(SIZE)}


def test_content_that_is_known_is_not_sent_again(saver, sent):
    put(saver, value=big(SIZE))
    before = len(ahead_of(sent))
    longer = big(SIZE) + bytes(1_000)
    put(saver, "another", value=longer)
    assert len(ahead_of(sent)) == before
    assert saver.get_tuple(at("another")).checkpoint["channel_values"] == {"value": longer}


def test_a_refused_command_leaves_only_content_that_nothing_refers_to(saver, raw):
    config = put(saver, n=1)
    late = new_checkpoint({"value": big(SIZE)})
    saver.delete_thread("t")
    with pytest.raises(ThreadDeleted):
        saver.put(config, late, {"source": "loop", "step": 1}, {"value": "1"})
    assert unreferenced(raw) == [0, 0, 0]
    assert stored(raw) >= SIZE // limits.CHUNK_BYTES
    assert saver.get_tuple(at()) is None


def test_a_value_over_the_cap_is_refused_before_anything_is_sent(open_saver, raw_of):
    saver = open_saver(max_value_bytes=SIZE)
    values = {"first": big(SIZE), "second": bytes(SIZE + 1)}
    with pytest.raises(ValueTooLarge):
        put(saver, **values)
    with pytest.raises(ValueTooLarge):
        saver.put_writes(at("t", "1"), list(values.items()), "task")
    raw = raw_of(saver)
    assert stored(raw) == 0
    assert unreferenced(raw) == [0, 0, 0]


def test_killed_between_two_parts_nothing_is_visible_and_the_next_one_stores_the_rest(shared_url, fork, raw_of):
    child = fork(stores_until, shared_url, SIZE, PARTS - 1)
    child.until("there")
    child.kill()
    found = "SELECT address, created_us FROM rp_blobs"
    with WorkflowCheckpointAdapter.from_conn_string(shared_url) as saver:
        raw = raw_of(saver)
        before = {bytes(row["address"]): row["created_us"] for row in raw.rows(found)}
        graph = keeps(lambda: {"pdf": big(SIZE)}, checkpointer=saver)
        state = graph.get_state(at("t"))
        assert (state.values, state.next) == ({"before": 1}, ("second",))
        assert graph.invoke(None, at("t"))["value"] == {"pdf": big(SIZE)}
        after = {bytes(row["address"]): row["created_us"] for row in raw.rows(found)}
    assert len(before) >= (PARTS - 2) * limits.CONTENT_PART_BYTES_MAX // limits.CHUNKED_BYTES_MIN
    assert after.items() >= before.items()  # what was there was not stored again
    assert len(after) >= SIZE // limits.CHUNK_BYTES


def test_a_connection_lost_on_the_way_to_a_server_that_has_less_sends_all_of_it_again(
    postgres_url, postgres_raw, opened
):
    """A standby took over that had not got the first parts yet."""
    saver, raw = opened(WorkflowCheckpointAdapter.from_conn_string(postgres_url)), postgres_raw()
    reached = []

    def fail_over():
        raw.rows("DELETE FROM rp_blobs")
        assert raw.value(END_ALL) >= 1

    def before(cut):
        reached.append(cut)
        if len(reached) == PARTS - 1:
            with ThreadPoolExecutor(1) as elsewhere:
                elsewhere.submit(fail_over).result()

    saver._core.engine._driver._hook = before
    put(saver, value=big(SIZE))
    assert len(reached) > PARTS + 1
    fresh = opened(WorkflowCheckpointAdapter.from_conn_string(postgres_url))
    assert fresh.get_tuple(at()).checkpoint["channel_values"] == {"value": big(SIZE)}
