from runtime_persist.commands.delete_runs_checkpoints import DeleteRunsCheckpoints
from tests.fixtures.contracts import Receipt, Unleased, changed


def make(world, *refs):
    return DeleteRunsCheckpoints(run_refs=refs or ("r1",), **world.of_thread())


def filled(world):
    """c1 of r1, c2 of r2 in the root; s1 of r1 in a subgraph; a write of each root checkpoint."""
    world.commit(world.put_checkpoint(checkpoint_id="c1", run_ref="r1"))
    world.commit(world.put_checkpoint(checkpoint_id="c2", parent_id="c1", run_ref="r2"))
    world.commit(world.put_checkpoint(checkpoint_id="s1", checkpoint_ns="sub", run_ref="r1"))
    world.commit(world.put_writes("a"))


class TestGuard(Unleased):
    def send(self, world):
        return make(world)


class TestReceipt(Receipt):
    def make(self, world):
        filled(world)
        return make(world)

    def other(self, world, command):
        return changed(command, run_refs=("another",))


def ids(world):
    return [row["checkpoint_id"] for row in world.raw.rows("SELECT checkpoint_id FROM rp_checkpoints ORDER BY 1")]


def test_checkpoints_and_writes_of_the_run_go_in_all_namespaces(world):
    filled(world)
    world.commit(make(world, "r1"))
    assert (ids(world), world.count("rp_writes")) == (["c2"], 0)
    assert world.head() == "c2"


def test_a_head_falls_back_to_the_greatest_checkpoint_left_and_goes_with_the_last(world):
    filled(world)
    world.commit(make(world, "r2"))
    assert (ids(world), world.head(), world.head(ns="sub")) == (["c1", "s1"], "c1", "s1")
    world.commit(make(world, "r1"))
    assert (ids(world), world.count("rp_heads")) == ([], 0)


def test_several_runs_go_in_one_command(world):
    filled(world)
    world.commit(make(world, "r1", "r2"))
    assert (ids(world), world.count("rp_heads")) == ([], 0)


def test_checkpoints_without_a_run_and_of_other_threads_stay(world):
    filled(world)
    world.commit(world.put_checkpoint("other", checkpoint_id="o1", run_ref="r1"))
    world.commit(world.put_checkpoint(checkpoint_id="c3", parent_id="c2"))
    world.commit(make(world, "r1", "r2"))
    assert ids(world) == ["c3", "o1"]


def test_an_unknown_run_changes_nothing(world):
    filled(world)
    world.commit(make(world, "nobody"))
    assert len(ids(world)) == 3
