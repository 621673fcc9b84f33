"""A step of unknown outcome: a person is asked, it is repeated under its key, or the outside is asked."""

import pytest

from runtime_persist import DidNotHappen, Happened, StillUnknown, step
from runtime_persist.errors import LeaseLost, OperationUnknown, OperationUnsupported
from tests.support.graphs import chain, config
from tests.support.journal import Losing, StepCharger

HELLO = {"log": []}


async def lost(runtime, way, raw, **options):
    outside = Losing(raw)
    graph = runtime.bind(chain({"node": StepCharger(way, outside, **options).node}), name="g")
    with pytest.raises(LeaseLost):
        await way(graph, "invoke", HELLO, config())
    return graph, outside


async def test_a_step_of_unknown_outcome_asks_a_person(runtime, way, raw):
    graph, outside = await lost(runtime, way, raw)
    with pytest.raises(OperationUnknown) as caught:
        await way(graph, "invoke", None, config())
    await way(runtime.runs, "resolve", caught.value.details["operation_id"], happened=True, result={"receipt": "found"})
    assert (await way(graph, "invoke", None, config()))["log"] == ["found"]
    assert outside.calls == ["a"]


async def test_a_step_that_may_be_repeated_is_with_the_same_key(runtime, way, raw):
    graph, outside = await lost(runtime, way, raw, on_unknown="retry")
    assert (await way(graph, "invoke", None, config()))["log"] == [2]
    assert outside.keys[0] == outside.keys[1]


@pytest.mark.parametrize("answer", [Happened({"receipt": "known"}), DidNotHappen(), StillUnknown("no such page")])
async def test_a_step_asks_the_outside(runtime, way, raw, answer):
    asked = []

    def ask(request, key, tries):
        asked.append((dict(request), key, [one.status for one in tries]))
        return answer

    graph, outside = await lost(runtime, way, raw, on_unknown=ask)
    if isinstance(answer, StillUnknown):
        with pytest.raises(OperationUnknown):
            await way(graph, "invoke", None, config())
    else:
        output = await way(graph, "invoke", None, config())
        assert output["log"] == ["known" if isinstance(answer, Happened) else 2]
    assert asked == [({"what": "a"}, outside.keys[0], ["unknown"])]
    assert set(outside.keys) == {outside.keys[0]}
    assert len(outside.calls) == (2 if isinstance(answer, DidNotHappen) else 1)


def test_a_plain_block_cannot_wait_for_who_asks_the_outside(runtime):
    async def ask(request, key, tries):
        return DidNotHappen()

    with pytest.raises(OperationUnsupported), step("x", on_unknown=ask):
        pass
