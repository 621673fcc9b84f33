"""Copies of a conversation: independent, without a second copy of the content, and without its effects again (K3)."""

import pytest

from runtime_persist import operation
from runtime_persist.errors import InvalidInput
from tests.support.graphs import asks, chain, config, nested, resume, says

LARGE = "x" * 100_000
COPIED = ("rp_checkpoints", "rp_writes", "rp_heads", "rp_operations")
OF_ITS_OWN = {"thread_id", "run_id", "epoch", "operation_id", "copied_from"}


@pytest.fixture
def calls():
    """What the outside world was asked for."""
    return []


@pytest.fixture
def waiting(runtime, way, calls):
    """Graphs of which one has paid inside a subgraph, and asks there: its thread is ``source``."""

    @operation(name="charge")
    def charge(what):
        calls.append(what)
        return {"receipt": len(calls), "text": LARGE}

    @operation(name="charge")
    async def acharge(what):
        calls.append(what)
        return {"receipt": len(calls), "text": LARGE}

    async def anode(_):
        return {"log": [(await acharge("order 7"))["receipt"]]}

    pay = anode if way.asynchronous else lambda _: {"log": [charge("order 7")["receipt"]]}
    inner = chain({"pay": pay, "ask": asks("ship it?"), "ship": says(LARGE)})
    return runtime.bind(nested(inner), name="shop")


def rows_of(raw, thread_id):
    """A thread's rows, without what is each thread's own."""
    return {
        table: sorted(
            repr({key: value for key, value in row.items() if key not in OF_ITS_OWN})
            for row in raw.rows(f"SELECT * FROM {table} WHERE thread_id = ?", thread_id)
        )
        for table in COPIED
    }


async def test_source_and_copies_go_on_by_themselves_and_effects_that_were_made_are_not_made_again(
    waiting, runtime, way, raw, calls
):
    """K3: with a subgraph, a question and a journal; the content is shared; a second copy is the same."""
    saver = runtime.checkpointer
    asked = await way(waiting, "invoke", {"log": []}, config("source"))
    assert asked["__interrupt__"][0].value == "ship it?"
    assert raw.value("SELECT count(DISTINCT checkpoint_ns) FROM rp_checkpoints") == 2
    source, blobs = rows_of(raw, "source"), raw.rows("SELECT owner, address FROM rp_blobs ORDER BY address")
    for target in ("first", "second"):
        await way(saver, "copy_thread", "source", target)
        assert rows_of(raw, target) == source
    assert raw.rows("SELECT owner, address FROM rp_blobs ORDER BY address") == blobs
    ended = {}
    for thread_id in ("first", "source", "second"):
        others = {other: rows_of(raw, other) for other in {"first", "source", "second"} - {thread_id}}
        state = await way(waiting, "get_state", config(thread_id))
        assert [task.interrupts[0].value for task in state.tasks] == ["ship it?"]
        ended[thread_id] = (await way(waiting, "invoke", resume(f"yes, {thread_id}"), config(thread_id)))["log"]
        assert {other: rows_of(raw, other) for other in others} == others
    assert ended == {
        thread_id: ["before", "before", 1, f"yes, {thread_id}", LARGE, "after"] for thread_id in ended
    }  # fmt: skip
    assert calls == ["order 7"]


async def test_a_thread_is_not_copied_onto_one_that_holds_anything(waiting, runtime, way, raw):
    """K3: neither onto another conversation, nor onto a copy made before; nothing is written."""
    saver = runtime.checkpointer
    for thread_id in ("source", "other"):
        await way(waiting, "invoke", {"log": []}, config(thread_id))
    await way(saver, "copy_thread", "source", "copy")
    before = raw.dump()
    for target in ("other", "copy", "source"):
        with pytest.raises(InvalidInput):
            await way(saver, "copy_thread", "source", target)
    assert raw.dump() == before


async def test_a_copy_outlives_its_source(waiting, runtime, way, calls):
    """K3: deleting the source takes no content from the copy."""
    saver = runtime.checkpointer
    await way(waiting, "invoke", {"log": []}, config("source"))
    await way(waiting, "invoke", resume("yes"), config("source"))
    await way(saver, "copy_thread", "source", "copy")
    await way(saver, "delete_thread", "source")
    assert (await way(saver, "get_tuple", config("source"))) is None
    assert (await way(waiting, "get_state", config("copy"))).values["log"][-2:] == [LARGE, "after"]
    assert calls == ["order 7"]
