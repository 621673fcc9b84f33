"""Content that nobody refers to goes, after a while; content that somebody refers to, or is about to, stays."""

import json
import random
import zlib
from collections import Counter

import pytest
from click.testing import CliRunner
from sqlalchemy import LargeBinary

from runtime_persist import operation
from runtime_persist.adapters.workflow import collecting
from runtime_persist.adapters.workflow.collecting import CollectedContent, CollectProgress
from runtime_persist.cli.main import main
from runtime_persist.errors import CheckpointCorrupt, InvalidInput
from runtime_persist.queries import references
from runtime_persist.schema import metadata
from tests.support.checkpoints import Steps, at, new_checkpoint
from tests.support.collecting import blobs, later, marked, whole
from tests.support.graphs import asks, chain, config, resume


def text(name, size=3_000):
    return "".join(random.Random(zlib.crc32(name.encode())).choices("abcdefgh", k=size))


def texts(name, count):
    """A list so long that its reference lies in pages."""
    return [text(f"{name} {n}", 700) for n in range(count)]


async def scanned(way, saver, raw, hours=25):
    """Two collections a day apart; what the second one did."""
    await way(saver, "collect_content")
    later(raw, hours, saver)
    return await way(saver, "collect_content")


async def test_the_content_of_a_deleted_thread_goes_and_what_others_share_stays(saver, raw, way):
    shared = texts("shared", 300)
    await Steps(way, saver, "mine").put(shared=shared, own=texts("mine", 300), plan=text("mine"))
    await Steps(way, saver, "theirs").put(shared=shared, own=texts("theirs", 300))
    before = blobs(raw)
    await way(saver, "delete_thread", "mine")
    first = await way(saver, "collect_content")
    assert (first.removed, first.unmarked) == (0, 0)
    assert first.scanned == len(before)
    assert len(marked(raw)) == first.marked > 10  # how it is split depends on the space's key
    assert await way(saver, "collect_content") == CollectedContent(
        rows=first.rows, scanned=len(before), waiting=first.marked
    )
    later(raw, 23, saver)
    assert (await way(saver, "collect_content")).waiting == first.marked
    later(raw, 1, saver)
    second = await way(saver, "collect_content")
    assert second.removed == first.marked
    assert second.removed_bytes > 200_000
    assert len(blobs(raw)) == len(before) - second.removed
    assert await way(saver, "collect_content") == CollectedContent(rows=first.rows, scanned=len(blobs(raw)))
    whole(saver)
    saver._core.engine.content.cache.clear()
    found = await way(saver, "get_tuple", at("theirs"))
    assert found.checkpoint["channel_values"] == {"shared": shared, "own": texts("theirs", 300)}


async def test_all_kinds_of_rows_keep_what_they_refer_to(runtime, raw, way):
    """Checkpoints, hidden ones, pending writes, inputs, questions, answers and results of runs and operations."""
    saver = runtime.checkpointer

    @operation(name="note")
    def note(what):
        return text(what, 40_000)

    graph = chain({"note": lambda state: {"log": [note("noted")[:9]]}, "ask": asks(text("why", 30_000))})
    bound = runtime.bind(graph, name="g")
    await way(bound, "invoke", {"log": [text("input", 30_000)]}, config("run"))
    await way(bound, "invoke", {"log": [text("deleted", 30_000)]}, config("deleted"))
    place = await Steps(way, saver, "writes").put(a=1)
    await way(saver, "put_writes", place, [("log", text("written")), ("__error__", text("an error"))], "task")
    await way(saver, "delete_thread", "deleted")
    referring = Counter(
        table.removeprefix("rp_")
        for table, rows in raw.dump().items()
        for row in rows
        if any(isinstance(value, bytes) and len(value) >= 16 for _, value in row)
    )
    assert {"checkpoints", "writes", "runs", "operations"} <= set(referring)
    done = await scanned(way, saver, raw)
    assert done.removed > 0
    whole(saver)
    await way(bound, "invoke", resume(text("because", 30_000)), config("run"))
    done = await scanned(way, saver, raw)
    whole(saver)
    saver._core.engine.content.cache.clear()
    (run,) = await way(runtime.runs, "list", thread_id="run")
    assert (await way(runtime.runs, "result", run.run_id))["log"][0] == text("input", 30_000)


def test_every_column_that_can_hold_a_reference_is_looked_at():
    """A new column of bytes is either read by a collection or listed here, as one that holds no reference."""
    no_reference = {
        "rp_attempts": {"callback_hash"},
        "rp_blobs": {"address", "content"},
        "rp_checkpoints": {"metadata", "fingerprint"},
        "rp_events": {"payload"},
        "rp_instances": {"fingerprint"},
        "rp_operations": {"request_fingerprint", "result_fingerprint", "raw_fingerprint"},
        "rp_receipts": {"fingerprint", "result"},
        "rp_runs": {"request_fingerprint"},
        "rp_spaces": {"secret", "manifest"},
        "rp_threads": {"thread_hash"},
        "rp_writes": {"fingerprint"},
    }
    looked_at = {
        "rp_checkpoints": {"body"},
        "rp_writes": {"value"},
        "rp_runs": set(references.RUN_VALUES),
        "rp_operations": set(references.OPERATION_VALUES),
    }
    for table in metadata.sorted_tables:
        columns = {column.name for column in table.c if isinstance(column.type, LargeBinary)}
        assert columns == no_reference.get(table.name, set()) | looked_at.get(table.name, set()), table.name


async def test_what_is_put_again_after_it_was_marked_stays(saver, raw, way):
    """Somebody who sends it does not know of the mark: sending takes it off."""
    big = texts("big", 300)
    await Steps(way, saver, "old").put(a=big)
    await way(saver, "delete_thread", "old")
    await way(saver, "collect_content")
    assert marked(raw)
    later(raw, 25, saver)
    await Steps(way, saver, "new").put(a=big)
    assert not marked(raw)
    assert (await way(saver, "collect_content")).removed == 0
    whole(saver)


async def test_what_was_marked_by_mistake_is_unmarked(saver, raw, way):
    await Steps(way, saver).put(a=text("a"))
    raw.rows("UPDATE rp_blobs SET unused_us = 1")
    done = await way(saver, "collect_content")
    assert (done.unmarked, done.removed, marked(raw)) == (1, 0, set())


async def test_who_only_refers_to_content_sends_it_again_within_the_hour(saver, raw, way):
    """What this process left out, and carried over from parent to child, is not relied on for longer than that."""
    steps = Steps(way, saver)
    await steps.put(a=texts("a", 300), b=text("b"))
    raw.rows("UPDATE rp_blobs SET unused_us = 1")  # as a collection does that looked a moment before the first put
    relied_on = blobs(raw)
    for minutes in range(0, 51, 10):
        await steps.put(n=minutes)
        assert marked(raw) == relied_on, "carried over, or known"
        later(raw, 10 / 60, saver)
    await steps.put(n=60)
    assert not marked(raw), "all of it was sent"
    whole(saver)


async def test_a_checkpoint_whose_parent_was_pruned_brings_all_its_values(saver, raw, way):
    """A fork of a checkpoint that is gone: its content was removed, and this process had carried it in memory."""
    steps = Steps(way, saver)
    old = await steps.put(a=texts("a", 100), b=text("b"))
    await steps.put(a=text("short"), b=text("other"))
    await steps.put(a=text("last"))
    await way(saver, "prune", ["t"])
    assert (await scanned(way, saver, raw)).removed > 0
    fork = new_checkpoint({"a": texts("a", 100), "b": text("b"), "n": 1})
    place = await way(saver, "put", old, fork, {}, {"n": "1"})
    whole(saver)
    saver._core.engine.content.cache.clear()
    found = await way(saver, "get_tuple", place)
    assert found.checkpoint["channel_values"] == fork["channel_values"]


async def test_a_value_that_a_late_put_does_not_bring_is_sent_again_from_its_parent(saver, raw, way):
    """As savers are called that keep values by version: only what is new is in the checkpoint."""
    values = {"a": texts("a", 100), "small": 1}
    first = new_checkpoint(values)
    place = await way(saver, "put", at(), first, {}, first["channel_versions"])
    later(raw, 2, saver)
    raw.rows("UPDATE rp_blobs SET unused_us = 1")
    second = new_checkpoint({"n": 2}, first["channel_versions"] | {"n": "1"})
    place = await way(saver, "put", place, second, {}, {"n": "1"})
    assert not marked(raw)
    found = await way(saver, "get_tuple", place)
    assert found.checkpoint["channel_values"] == values | {"n": 2}


async def test_marked_content_is_read_but_not_relied_on(saver, open_saver, raw, way):
    """Another process reads a marked value; what it puts of it then is sent, and unmarked."""
    steps = Steps(way, saver)
    await steps.put(a=texts("a", 100))
    raw.rows("UPDATE rp_blobs SET unused_us = 1")
    engine = saver._core.engine
    engine.content.cache.clear()
    engine.content.known._seen.clear()
    assert (await way(saver, "get_tuple", at())).checkpoint["channel_values"] == {"a": texts("a", 100)}
    assert not engine.content.known.seen(blobs(raw))
    await steps.put(n=1)
    assert not marked(raw)


async def test_a_damaged_row_or_page_stops_the_collection_before_anything_is_removed(saver, raw, way):
    """Nobody can tell then what is in use."""
    await Steps(way, saver, "old").put(a=text("old"))
    await way(saver, "delete_thread", "old")
    await way(saver, "collect_content")
    later(raw, 25, saver)
    await Steps(way, saver).put(a=texts("a", 300))
    before = blobs(raw)
    (row,) = raw.rows("SELECT body FROM rp_checkpoints")
    refs = collecting.encoding.refs_of(bytes(row["body"]))["a"]
    page = next(piece.data for piece in refs.pieces if piece.depth > 0)
    content = bytes(raw.value("SELECT content FROM rp_blobs WHERE address = ?", page))
    for broken in (content[:-1] + bytes([content[-1] ^ 1]), b"\0nonsense"):
        raw.rows("UPDATE rp_blobs SET content = ? WHERE address = ?", broken, page)
        with pytest.raises(CheckpointCorrupt):
            await way(saver, "collect_content")
    raw.rows("UPDATE rp_blobs SET content = ? WHERE address = ?", content, page)
    raw.rows("UPDATE rp_checkpoints SET parent_id = 'x'")
    with pytest.raises(CheckpointCorrupt):
        await way(saver, "collect_content")
    assert blobs(raw) == before
    raw.rows("UPDATE rp_checkpoints SET parent_id = NULL")
    assert (await way(saver, "collect_content")).removed == 1


async def test_many_rows_are_read_and_removed_in_pages(saver, raw, way, monkeypatch):
    monkeypatch.setattr(collecting.limits, "COLLECT_ROWS", 7)
    monkeypatch.setattr(collecting.limits, "PAGE_ROWS", 3)
    for name in ("gone", "kept"):
        steps = Steps(way, saver, name)
        for n in range(7):
            await steps.put(a=text(f"{name} {n}"))
            await way(saver, "put_writes", steps.config, [("a", text(f"{name} write {n}"))], "task")
    await way(saver, "delete_thread", "gone")
    told = []
    first = await way(saver, "collect_content", progress=told.append)
    assert (first.rows, first.scanned, first.marked) == (14, 28, 14)
    assert told[-1] == CollectProgress(42, 42)
    assert [step.done for step in told] == sorted(step.done for step in told)
    later(raw, 24, saver)
    assert (await way(saver, "collect_content")).removed == 14
    kinds = Counter(row["kind"] for row in raw.rows("SELECT kind FROM rp_receipts"))
    assert kinds["collect_content"] in range(4, 9)
    whole(saver)


@pytest.mark.parametrize("hours", [1.9, -1, float("nan"), float("inf"), "24", None])
async def test_hours_that_cannot_be_are_refused(saver, way, hours):
    with pytest.raises(InvalidInput, match="from 2 to 876000"):
        await way(saver, "collect_content", hours=hours)


def test_the_command_line_removes_it_and_says_what_it_did(runtime, raw, shared_url):
    def cli(*arguments):
        return CliRunner().invoke(main, ["db", "collect", "--url", shared_url, *arguments], catch_exceptions=False)

    saver = runtime.checkpointer
    saver.put(at(), new_checkpoint({"a": text("a")}), {}, {"a": "1"})
    saver.delete_thread("t")
    assert "removed 0 of 1 pieces" in cli().stdout
    later(raw, 3, saver)
    expected = {"rows": 0, "scanned": 1, "marked": 0, "unmarked": 0, "waiting": 1, "removed": 0, "removed_bytes": 0}
    assert json.loads(cli("--json").stdout) == expected
    size = raw.value("SELECT size FROM rp_blobs")
    assert f"removed 1 of 1 pieces of content ({size:,} bytes" in cli("--hours", "2").stdout
    assert "removed 0 of 0" in cli().stdout
    assert cli("--hours", "1").exit_code == 2
