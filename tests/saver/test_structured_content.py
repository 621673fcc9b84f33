"""What a checkpoint stores of values that it shares with others: only what is new, once; and it all comes back."""

import asyncio
import random
from functools import cache

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.runtime import RunControl, Runtime

from runtime_persist.adapters.workflow import WorkflowCheckpointAdapter
from runtime_persist.adapters.workflow.encoding import Place, checkpoint_row, encoded_metadata, serialized
from runtime_persist.commands.import_thread import ImportThread
from runtime_persist.commands.parts.spec import semantic_fingerprint
from runtime_persist.contentstore import unpack
from runtime_persist.errors import CheckpointCorrupt, StaleWriter
from runtime_persist.model.payload import pieces_of
from tests.support import programs
from tests.support.checkpoints import Steps, at, new_checkpoint


@cache
def message(n):
    source = random.Random(n)
    kind = AIMessage if n % 2 else HumanMessage
    return kind(content="".join(source.choices("abcdefgh ", k=source.randrange(200, 1_200))), id=f"message {n}")


def messages(count, first=0):
    return [message(n) for n in range(first, first + count)]


def files(count):
    return {f"module_{n}.py": "".join(random.Random(n).choices("abcdefgh ", k=2_000)) for n in range(count)}


class Blobs:
    """What is in the content store."""

    def __init__(self, raw) -> None:
        self._raw = raw
        self.known = {}
        self.new()

    def new(self):
        """The contents that came since this was asked last."""
        rows = self._raw.rows("SELECT address, content FROM rp_blobs")
        stored = {bytes(row["address"]): bytes(row["content"]) for row in rows}
        fresh = [unpack(content) for address, content in stored.items() if address not in self.known]
        self.known = stored
        return fresh


@pytest.fixture
def blobs(saver, raw):
    return Blobs(raw)


async def values(way, saver, thread_id="t"):
    return (await way(saver, "get_tuple", at(thread_id))).checkpoint["channel_values"]


def forget(saver):
    """As a process that has just started."""
    content = saver._core.engine.content
    content.cache.clear()
    content.known.__init__()
    saver._core._manifests.clear()


@pytest.mark.parametrize("cold", [False, True], ids=["warm", "cold"])
async def test_an_append_stores_the_new_message(saver, way, blobs, cold):
    steps = Steps(way, saver)
    await steps.put(messages=messages(300))
    blobs.new()
    size = 0
    for count in range(301, 320):
        if cold:
            forget(saver)
        await steps.put(messages=messages(count))
        size += sum(map(len, blobs.new()))
    new = sum(len(one.content) + 150 for one in messages(19, first=300))
    assert size < 2.5 * new + 2_000
    forget(saver)
    assert await values(way, saver) == {"messages": messages(319)}


async def test_a_list_that_lost_its_front_keeps_its_groups(saver, way, blobs):
    steps = Steps(way, saver)
    await steps.put(messages=messages(300))
    blobs.new()
    await steps.put(messages=messages(260, first=40))
    assert len(blobs.new()) <= 4
    forget(saver)
    assert await values(way, saver) == {"messages": messages(260, first=40)}


async def test_a_changed_file_is_stored_alone(saver, way, blobs):
    steps = Steps(way, saver)
    await steps.put(state={"files": files(60), "n": 1})
    blobs.new()
    changed = {"files": files(60) | {"module_9.py": "new " * 700}, "n": 1}
    await steps.put(state=changed)
    stored = blobs.new()
    assert [len(part) for part in stored if b"new new" in part] == [2_803]
    assert len(stored) <= 6  # of more than 60: and the page that names it, or a few where an address ends one
    forget(saver)
    assert await values(way, saver) == {"state": changed}


async def test_what_is_written_first_is_not_stored_again_by_its_channel(saver, way, blobs):
    steps = Steps(way, saver)
    plan = {"tasks": [{"id": n, "text": "x" * 150, "n": n * n} for n in range(100)]}
    place = await steps.put(messages=messages(41), plan=plan)
    blobs.new()
    plan = {"tasks": [*plan["tasks"][:50], {"id": 50, "text": "done"}, *plan["tasks"][51:]]}
    await way(saver, "put_writes", place, [("messages", messages(2, first=41)), ("plan", plan)], "task")
    assert len(blobs.new()) >= 3
    pending = (await way(saver, "get_tuple", at())).pending_writes
    assert [value for _, _, value in pending] == [messages(2, first=41), plan]
    await steps.put(messages=messages(43), plan=plan)  # no group ends here: it would be stored as one
    assert blobs.new() == []


async def test_a_write_of_one_bare_message_is_shared_too(saver, way, blobs):
    steps = Steps(way, saver)
    place = await steps.put(messages=messages(3))
    await way(saver, "put_writes", place, [("messages", message(3))], "task")
    blobs.new()
    await steps.put(messages=messages(4))
    assert blobs.new() == []


async def test_a_long_list_lies_in_pages_and_an_append_leaves_the_old_ones(saver, way, blobs, raw):
    steps = Steps(way, saver)
    await steps.put(messages=messages(1_500))
    sizes = [len(raw.value("SELECT body FROM rp_checkpoints"))]
    blobs.new()
    await steps.put(messages=messages(1_501))
    assert len(blobs.new()) <= 4
    sizes += [len(row["body"]) for row in raw.rows("SELECT body FROM rp_checkpoints")]
    assert max(sizes) < 1_200
    forget(saver)
    assert await values(way, saver) == {"messages": messages(1_501)}


async def test_every_kind_of_value_comes_back(saver, way):
    source = random.Random(3)
    state = {
        "nested": {"a": {"b": [{"c": messages(30)}, "x" * 5_000]}, "empty": [], "none": None},
        "tuple": tuple(messages(30)),
        "text": "".join(source.choices("abc", k=400_000)),
        "bytes": source.randbytes(300_000),
        "array": bytearray(source.randbytes(5_000)),
        "numbers": [source.random() for _ in range(20_000)],
        "many": {n: {"text": "y" * n} for n in range(300)},
        "short": [messages(1)[0], "s"],
    }
    steps = Steps(way, saver)
    await steps.put(**state)
    place = await steps.put(n=1)
    await way(saver, "put_writes", place, list(state.items()), "task")
    for cold in (False, True):
        if cold:
            forget(saver)
        found = await way(saver, "get_tuple", at())
        assert found.checkpoint["channel_values"] == state | {"n": 1}
        assert [(channel, value) for _, channel, value in found.pending_writes] == list(state.items())
    listed = await way.all(saver, "list", at())
    assert [one.checkpoint["channel_values"] for one in listed] == [state | {"n": 1}, state]


class Reversed(JsonPlusSerializer):
    """A serializer of somebody's own."""

    def dumps_typed(self, obj):
        kind, data = super().dumps_typed(obj)
        return f"reversed {kind}", data[::-1]

    def loads_typed(self, data):
        return super().loads_typed((data[0].removeprefix("reversed "), data[1][::-1]))


async def test_a_serializer_of_ones_own_has_its_values_stored_whole(open_saver, way, raw_of):
    saver = open_saver(serde=Reversed())
    steps = Steps(way, saver)
    await steps.put(messages=messages(100))
    blobs = Blobs(raw_of(saver))
    assert len(blobs.known) == 1
    forget(saver)
    assert await values(way, saver) == {"messages": messages(100)}


async def test_history_reads_what_checkpoints_share_once(saver, way, raw):
    steps = Steps(way, saver)
    for count in range(100, 130):
        await steps.put(messages=messages(count))
    forget(saver)
    found = await way.all(saver, "list", at())
    assert [len(one.checkpoint["channel_values"]["messages"]) for one in found] == [*range(129, 99, -1)]
    kept = saver._core.engine.content.cache._kept
    assert set(kept) <= {bytes(row["address"]) for row in raw.rows("SELECT address FROM rp_blobs")}


# --- damage ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("damage", ["flipped", "lost"])
@pytest.mark.parametrize("which", ["a segment", "a page"])
async def test_a_damaged_part_is_told_by_channel_checkpoint_and_address(saver, way, raw, damage, which):
    steps = Steps(way, saver)
    place = await steps.put(small=1, messages=messages(600))
    (manifest, *_) = next(iter(saver._core._manifests.values()))
    ref = manifest.refs["messages"]
    address = next(piece.data for piece in ref.pieces if piece.depth == 1)
    if which == "a segment":
        page = unpack(raw.value("SELECT content FROM rp_blobs WHERE address = ?", address))
        address = next(piece.data for piece in pieces_of(page) if piece.depth == 0)
    if damage == "lost":
        raw.rows("DELETE FROM rp_blobs WHERE address = ?", address)
    else:
        content = bytearray(raw.value("SELECT content FROM rp_blobs WHERE address = ?", address))
        content[-1] ^= 1
        raw.rows("UPDATE rp_blobs SET content = ? WHERE address = ?", bytes(content), address)
    forget(saver)
    for reading in (way(saver, "get_tuple", at()), way.all(saver, "list", at())):
        with pytest.raises(CheckpointCorrupt) as caught:
            await reading
        for part in ("'messages'", place["configurable"]["checkpoint_id"], address.hex()):
            assert part in str(caught.value)


# --- what is known -------------------------------------------------------------------------------------------------


async def test_what_is_known_to_be_stored_is_not_sent_again(saver, way, raw):
    """The row is taken away behind the saver's back: only a put that sent it again would bring it back."""
    steps = Steps(way, saver)
    await steps.put(messages=messages(20))
    raw.rows("DELETE FROM rp_blobs")
    await steps.put(messages=messages(21))
    sent = raw.value("SELECT count(*) FROM rp_blobs")
    assert sent == 1
    forget(saver)
    await steps.put(messages=messages(22))
    assert raw.value("SELECT count(*) FROM rp_blobs") > 3
    assert await values(way, saver) == {"messages": messages(22)}


async def test_what_is_known_is_sent_again_after_an_hour(saver, way, raw, monkeypatch):
    await Steps(way, saver, "first").put(messages=messages(20))
    stored = raw.value("SELECT count(*) FROM rp_blobs")
    raw.rows("DELETE FROM rp_blobs")
    monkeypatch.setattr(saver._core.engine.content.known, "_max_seconds", -1.0)
    await Steps(way, saver, "second").put(messages=messages(20))
    assert raw.value("SELECT count(*) FROM rp_blobs") == stored


async def test_a_refused_put_makes_nothing_known(saver, way, raw):
    slow, quick = (at(__pregel_runtime=Runtime(control=RunControl())) for _ in range(2))
    for invocation in (slow, quick):
        assert await way(saver, "get_tuple", invocation) is None
    await way(saver, "put", quick, new_checkpoint({"n": 2}), {}, {"n": "1"})
    with pytest.raises(StaleWriter):
        await way(saver, "put", slow, new_checkpoint({"messages": messages(20)}), {}, {"messages": "1"})
    assert raw.value("SELECT count(*) FROM rp_blobs") == 0
    await Steps(way, saver, "elsewhere").put(messages=messages(20))
    forget(saver)
    assert await values(way, saver, "elsewhere") == {"messages": messages(20)}


async def test_a_deleted_threads_content_is_there_for_whoever_knows_it(saver, way, raw):
    await Steps(way, saver, "gone").put(messages=messages(40))
    await way(saver, "delete_thread", "gone")
    await Steps(way, saver, "t").put(messages=messages(40))
    forget(saver)
    assert await values(way, saver) == {"messages": messages(40)}


async def test_a_copied_thread_shares_all_content(saver, way, blobs):
    await Steps(way, saver).put(messages=messages(400))
    blobs.new()
    await way(saver, "copy_thread", "t", "copy")
    assert blobs.new() == []
    forget(saver)
    assert await values(way, saver, "copy") == {"messages": messages(400)}


def test_processes_that_store_the_same_parts_at_once_wait_for_nobody_for_ever(runtime, shared_url, fork):
    """All of them insert the same rows, in the order of their addresses: no deadlock, and no part is missing."""
    children = [fork(programs.putter, shared_url, f"thread {n}", 12) for n in range(3)]
    for child in children:
        child.until("ready")
    for child in children:
        child.give_the_word()
    for child in children:
        child.until("returned")
    saver = runtime.checkpointer
    for n in range(3):
        found = saver.get_tuple(at(f"thread {n}")).checkpoint["channel_values"]["messages"]
        assert len(found) == 12 * 40


async def test_a_filtered_listing_loads_only_what_matches(saver, way):
    steps = Steps(way, saver)
    for n in range(6):
        await steps.put(**{f"channel {n}": [str(n) * 1_000], f"channel {n - 1}": None})
    forget(saver)
    (found,) = await way.all(saver, "list", at(), filter={"step": 3})
    assert found.checkpoint["channel_values"]["channel 3"] == ["3" * 1_000]
    kept = saver._core.engine.content.cache._kept
    assert [content[-1:] for content in kept.values()] == [b"3"]


@pytest.mark.parametrize("threads", [1, 12], ids=["alone", "many at once"])
def test_after_a_lost_connection_nothing_is_taken_to_be_stored(postgres_url, opened, raw_of, threads):
    """The server that answers then may be a standby that had less. Content goes with what acknowledged it."""
    saver = opened(WorkflowCheckpointAdapter.from_conn_string(postgres_url))
    raw = raw_of(saver)

    async def put_all(first):
        put = [
            saver.aput(at(f"thread {first + n}"), new_checkpoint({"messages": messages(30)}), {}, {"messages": "1"})
            for n in range(threads)
        ]
        await asyncio.gather(*put)

    asyncio.run(put_all(0))
    asyncio.run(put_all(threads))
    raw.rows("DELETE FROM rp_blobs")
    raw.rows(
        "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    asyncio.run(put_all(2 * threads))
    forget(saver)
    for n in range(threads):
        found = saver.get_tuple(at(f"thread {2 * threads + n}"))
        assert found.checkpoint["channel_values"] == {"messages": messages(30)}


def test_the_same_request_has_one_fingerprint_whatever_content_it_brings(saver):
    """A command that is tried again may bring more, or less, than the first time."""
    found = []
    for known in (False, True):
        if known:
            saver._core.engine.content.known.add(blob.address for blob in found[0].rows[0].blobs[:3])
        writer = saver._core.engine.content.writer()
        made = new_checkpoint({"messages": messages(30)}) | {"id": "1", "ts": ""}
        values = serialized(saver.serde, made, ["messages"], 10**9)
        metadata = encoded_metadata(saver.serde, {}, {}, None, 10**9)
        row, _ = checkpoint_row(writer, saver.serde, Place("t", "", None), made, metadata, values, None)
        fields = {"space": "default", "thread_id": "t", "thread_hash": b"", "command_id": "c"}
        found.append(ImportThread(rows=(row,), **fields))
    first, second = found
    assert len(second.rows[0].blobs) == len(first.rows[0].blobs) - 3
    assert semantic_fingerprint(first) == semantic_fingerprint(second)
