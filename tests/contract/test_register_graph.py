from runtime_persist.commands.register_graph import RegisterGraph
from tests.fixtures.contracts import Receipt, changed


def make(world, graph="support"):
    return RegisterGraph(graph=graph, **world.base())


class TestReceipt(Receipt):
    def make(self, world):
        return make(world)

    def other(self, world, command):
        return changed(command, graph="another")


def stored(world):
    row = world.raw.one("SELECT version, retry_policy FROM rp_graphs")
    return row["version"], row["retry_policy"]


def test_what_was_registered_last_counts_and_what_is_not_said_stays(world):
    world.commit(make(world))
    assert stored(world) == (None, None)
    world.commit(changed(make(world), version="v1", retry_policy="{}"))
    world.commit(changed(make(world), version="v2"))
    assert stored(world) == ("v2", "{}")
    world.commit(make(world))
    assert stored(world) == ("v2", "{}")


def test_the_name_is_noted_once(world):
    world.commit(make(world))
    before = world.raw.one("SELECT * FROM rp_graphs")
    assert (before["space"], before["graph"]) == (world.space, "support")
    world.commit(make(world))
    assert world.raw.one("SELECT * FROM rp_graphs") == before
    world.commit(make(world, "another"))
    assert world.count("rp_graphs") == 2
