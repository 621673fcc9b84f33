from runtime_persist.commands.register_graph import RegisterGraph
from tests.fixtures.contracts import Receipt, changed


def make(world, graph="support"):
    return RegisterGraph(graph=graph, **world.base())


class TestReceipt(Receipt):
    def make(self, world):
        return make(world)

    def other(self, world, command):
        return changed(command, graph="another")


def test_the_name_is_noted_once(world):
    world.commit(make(world))
    before = world.raw.one("SELECT * FROM rp_graphs")
    assert (before["space"], before["graph"]) == (world.space, "support")
    world.commit(make(world))
    assert world.raw.one("SELECT * FROM rp_graphs") == before
    world.commit(make(world, "another"))
    assert world.count("rp_graphs") == 2
