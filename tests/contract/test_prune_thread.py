import dataclasses

from runtime_persist.commands.prune_thread import PruneThread, Snapshot
from runtime_persist.errors import StaleWriter
from tests.fixtures.contracts import Receipt, Unleased, changed


def make(world, **fields):
    chosen = {"heads": {}, "delete": {}, "hide": {}, "roots": {}, "empty": ()}
    return PruneThread(**(chosen | world.of_thread() | fields))


def filled(world):
    """c1 <- c2 <- c3 in the root, s1 in a subgraph, a write of c1."""
    world.commit(world.put_checkpoint(checkpoint_id="c1"))
    world.commit(world.put_checkpoint(checkpoint_id="c2", parent_id="c1"))
    world.commit(world.put_checkpoint(checkpoint_id="c3", parent_id="c2"))
    world.commit(world.put_checkpoint(checkpoint_id="s1", checkpoint_ns="sub"))
    world.commit(world.put_writes("a"))
    return {"": "c3", "sub": "s1"}


class TestGuard(Unleased):
    def send(self, world):
        return make(world)


class TestReceipt(Receipt):
    def make(self, world):
        return make(world, heads=filled(world), delete={"": ("c1",)})

    def other(self, world, command):
        return changed(command, delete={"": ("c2",)})


def rows(world):
    found = world.raw.rows("SELECT checkpoint_id, parent_id, hidden, orphan FROM rp_checkpoints ORDER BY 1")
    return [tuple(row.values()) for row in found]


def test_what_is_named_goes_with_its_writes_and_what_stays_is_marked(world):
    heads = filled(world)
    world.commit(
        make(world, heads=heads, delete={"": ("c1",), "sub": ("s1",)}, hide={"": ("c2",)}, roots={"": ("c3",)},
             empty=("sub",))
    )  # fmt: skip
    assert rows(world) == [("c2", "c1", 1, 0), ("c3", "c2", 0, 1)]
    assert (world.count("rp_writes"), world.head(), world.count("rp_heads")) == (0, "c3", 1)


def test_a_head_that_moved_since_it_was_read_is_refused(world):
    heads = filled(world)
    world.commit(world.put_checkpoint(checkpoint_id="c4", parent_id="c3"))
    world.refused(make(world, heads=heads, delete={"": ("c1",)}), StaleWriter)


def test_rows_that_were_written_meanwhile_stay(world):
    heads = filled(world)
    world.commit(world.put_writes("late", task_id="another"))
    world.commit(make(world, heads=heads, delete={"": ("c2",)}))
    assert [row[0] for row in rows(world)] == ["c1", "c3", "s1"]
    assert world.count("rp_writes") == 2


def rewritten(world, **fields):
    """A snapshot of c3 as it was stored, with another body."""
    read = world.row("c3", "c2").fingerprint
    return Snapshot(**({"row": world.row("c3", "c2", b"with all its values"), "read": read} | fields))


def stored(world):
    return world.raw.one("SELECT * FROM rp_checkpoints WHERE checkpoint_id = 'c3'")


def test_a_head_is_rewritten_in_place_with_its_content_and_stays_its_runs(world):
    held = world.owned()
    world.commit(world.commit_checkpoint(held, checkpoint_id="c3", parent_id="c2"))
    world.expire(held)
    before, one = stored(world), rewritten(world)
    world.commit(make(world, heads={"": "c3"}, snapshots=(one,)))
    new = {name: getattr(one.row, name) for name in ("body", "metadata", "fingerprint")}
    assert stored(world) == before | new
    assert before["run_id"] == held.run_id
    (blob,) = one.row.blobs
    assert world.raw.value("SELECT content FROM rp_blobs WHERE address = ?", blob.address) == blob.content


def test_a_head_that_changed_since_it_was_read_is_refused(world):
    heads = filled(world)
    world.refused(make(world, heads=heads, snapshots=(rewritten(world, read=b"another"),)), StaleWriter)
    gone = dataclasses.replace(rewritten(world).row, checkpoint_id="c9")
    world.refused(make(world, heads=heads, snapshots=(rewritten(world, row=gone),)), StaleWriter)
