"""Checks of one saver: versions, clones, values, what LangGraph looks at, limits of listings."""

import enum
import math
from datetime import UTC, datetime

import pytest
from langgraph.pregel._checkpoint import put_writes_accepts_task_path

from runtime_persist.errors import StaleWriter
from tests.saver.test_optimistic import checkpoints, head, loaded, put
from tests.support.checkpoints import TASK, Steps, at, new_checkpoint


class Color(str, enum.Enum):  # noqa: UP042 (a text and an enum in one is the case)
    """A text and an enum in one: what a database of texts makes a plain text of."""

    RED = "red"


class Level(enum.IntEnum):
    """A number and an enum in one."""

    HIGH = 3


TYPED = {
    "text enum": Color.RED,
    "number enum": Level.HIGH,
    "tuple": (1, (2, "x")),
    "set": {1, 2},
    "frozen set": frozenset({"a"}),
    "bool": True,
    "int": 1,
    "float": 1.0,
    "great int": 2**63 - 1,
    "bytes": b"\xff\0",
    "time": datetime(2024, 1, 2, 3, 4, 5, 6, UTC),
    "half an emoji": "a\ud800b",
    "nul": "\0",
}


def same(found, given):
    """Equal and of the same type, all the way down."""
    assert (type(found), found) == (type(given), given)
    if isinstance(given, tuple):
        assert all(same(one, other) for one, other in zip(found, given, strict=True))
    return True


async def values_come_back_with_their_type(saver, way):
    """In channels and in writes; not a number stays not a number, minus zero keeps its sign."""
    values = {**TYPED, "nan": math.nan, "minus zero": -0.0}
    given = new_checkpoint(values)
    place = await way(saver, "put", at(), given, {}, given["channel_versions"])
    await way(saver, "put_writes", place, list(values.items()), TASK)
    found = await way(saver, "get_tuple", at())
    for stored in (
        found.checkpoint["channel_values"],
        {channel: value for _, channel, value in found.pending_writes},
    ):
        assert stored.keys() == values.keys()
        assert math.isnan(stored["nan"])
        assert math.copysign(1, stored["minus zero"]) == -1
        assert all(same(stored[name], value) for name, value in TYPED.items())


async def versions_grow_as_text_and_are_never_given_twice(saver, way):
    """Pregel takes the greatest of all versions; two forks of one checkpoint must not share one."""
    versions = [saver.get_next_version(None, None)]
    for _ in range(120):
        versions.append(saver.get_next_version(versions[-1], None))
    assert {type(version) for version in versions} == {str}
    assert sorted(versions) == versions
    assert len(set(versions)) == len(versions)
    forks = {saver.get_next_version(versions[-1], None) for _ in range(50)}
    assert len(forks) == 50
    assert min(forks) > versions[-1]
    assert saver.get_next_version(9, None) > saver.get_next_version(8, None)
    assert saver.get_next_version(99_999, None) > versions[-1]
    assert saver.get_next_version("00000000000000000000000000000007.5", None).startswith("0" * 31 + "8")


async def a_clone_shares_what_its_saver_knows(saver, way):
    """LangGraph makes a clone (``with_allowlist``) for every call: a stale writer is one of any clone."""
    first, theirs, ours = checkpoints(3)
    clone = saver.with_allowlist([Color])
    assert isinstance(clone, type(saver))
    await put(saver, way, at(), first)
    slow = await loaded(clone, way, first["id"])
    quick = await loaded(saver, way, first["id"])
    await put(clone, way, quick, theirs)
    with pytest.raises(StaleWriter):
        await put(saver, way, slow, ours)
    assert await head(clone.with_allowlist([Level]), way) == theirs["id"]


async def langgraph_sees_that_it_takes_a_task_path(saver, way):
    """Pregel looks at the signature, and silently leaves the path out when it is not there."""
    assert put_writes_accepts_task_path(saver.put_writes)
    assert put_writes_accepts_task_path(saver.aput_writes)


async def a_limit_counts_what_matches(saver, way):
    """A limit is of the answer, not of the rows that were looked at."""
    steps = Steps(way, saver)
    for n in range(6):
        await steps.put(a=n)
    found = await way.all(saver, "list", at(), filter={"step": 1}, limit=1)
    assert [one.metadata["step"] for one in found] == [1]
    found = await way.all(saver, "list", at(), before=at("t", steps.ids[4]), filter={"source": "loop"}, limit=2)
    assert [one.metadata["step"] for one in found] == [3, 2]


async def sends_of_an_old_format_come_with_the_child(saver, way):
    """Formats below 4 keep pending sends among the parent's writes; a newer one keeps its own."""
    parent = new_checkpoint({}, v=1)
    place = await way(saver, "put", at(), parent, {}, {})
    await way(saver, "put_writes", place, [("__pregel_tasks", "b1"), ("__pregel_tasks", "b2")], "task-1", "2")
    await way(saver, "put_writes", place, [("__pregel_tasks", "a1"), ("x", 1)], "task-2", "1")
    child, modern = new_checkpoint({"c": 1}, v=1), new_checkpoint({"c": 1}, v=4)
    for made in (child, modern):
        await way(saver, "put", place, made, {}, {"c": "1"})
    listed = {one.checkpoint["id"]: one for one in await way.all(saver, "list", at())}
    for read in (listed, {made["id"]: await way(saver, "get_tuple", at("t", made["id"])) for made in (child, modern)}):
        old, new = read[child["id"]].checkpoint, read[modern["id"]].checkpoint
        assert old["channel_values"] == {"c": 1, "__pregel_tasks": ["a1", "b1", "b2"]}
        assert old["channel_versions"] == {"c": "1", "__pregel_tasks": "1"}
        assert new["channel_values"] == {"c": 1}
    assert (await way(saver, "get_tuple", place)).checkpoint["channel_values"] == {}


CHECKS = (
    values_come_back_with_their_type,
    versions_grow_as_text_and_are_never_given_twice,
    a_clone_shares_what_its_saver_knows,
    langgraph_sees_that_it_takes_a_task_path,
    a_limit_counts_what_matches,
    sends_of_an_old_format_come_with_the_child,
)
