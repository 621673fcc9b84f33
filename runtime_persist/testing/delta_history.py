"""History of DeltaChannels: a capability for LangGraph's checkpointer conformance kit, for any saver.

A DeltaChannel stores only what each step wrote. Its value is rebuilt from ``get_delta_channel_history``: the writes
of the ancestors since the nearest stored value (the ``seed``), oldest first. A saver that answers wrongly loads a
state nobody had, and no other capability of the kit would notice. The published kit (0.0.2) does not ask.

    report = await delta_history_test(my_saver)     # my_saver: made with the kit's @checkpointer_test
    report.print_report()

or ``python -m runtime_persist.testing.delta_history module:my_saver``.

As the kit does with the others, the capability is detected when the saver overrides LangGraph's default.
"""

from __future__ import annotations

import asyncio
import uuid
from typing import TYPE_CHECKING, Any

import click
from langgraph.checkpoint.base import BaseCheckpointSaver, empty_checkpoint
from langgraph.checkpoint.base.id import uuid6
from langgraph.checkpoint.serde.types import _DeltaSnapshot

from runtime_persist.testing.capability import (
    CheckResult,
    OnTestResult,
    Report,
    Saver,
    equal,
    load,
    run_checks,
)

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import DeltaChannelHistory
    from langgraph.checkpoint.conformance.initializer import RegisteredCheckpointer

CAPABILITY = "delta_channel_history"
CHANNEL = "items"
_LONG = 140
"""Ancestors of the longest chain: more than a saver reads at once."""
_DEADLINE_SECONDS = 60.0
_NOTHING = object()


class _Chain:
    """A thread that grows by one checkpoint a call; each step's version is new, as a DeltaChannel's is."""

    def __init__(self, saver: Saver, thread_id: str | None = None, ns: str = "") -> None:
        self.saver = saver
        self.at: RunnableConfig = {
            "configurable": {"thread_id": thread_id or str(uuid.uuid4()), "checkpoint_ns": ns},
        }
        self._version = 0

    @property
    def thread_id(self) -> str:
        found: str = self.at["configurable"]["thread_id"]
        return found

    async def grow(
        self,
        *writes: Any,
        seed: Any = _NOTHING,
        channel: str = CHANNEL,
        checkpoint_id: str | None = None,
    ) -> RunnableConfig:
        """Add a checkpoint, with a stored value if one is given; then store writes to the channel on it."""
        self._version += 1
        version = f"{self._version:032}.{uuid.uuid4().int}"
        made = empty_checkpoint()
        made["id"] = checkpoint_id or str(uuid6())
        made["channel_versions"] = {channel: version}
        made["channel_values"] = {} if seed is _NOTHING else {channel: seed}
        self.at = await self.saver.aput(
            self.at, made, {"source": "loop", "step": self._version, "parents": {}}, {channel: version}
        )
        if writes:
            await self.saver.aput_writes(self.at, [(channel, one) for one in writes], str(uuid.uuid4()))
        return self.at

    async def history(self, at: RunnableConfig | None = None, channel: str = CHANNEL) -> DeltaChannelHistory:
        """Ask for the history of one channel at a checkpoint (None: the newest of the chain)."""
        found: DeltaChannelHistory = (await _histories(self.saver, at or self.at, channel))[channel]
        return found


async def _histories(saver: Saver, at: RunnableConfig, *channels: str) -> Any:
    asked = saver.aget_delta_channel_history(config=at, channels=list(channels))
    return await asyncio.wait_for(asked, _DEADLINE_SECONDS)


def _is(found: DeltaChannelHistory, *values: Any, seed: Any = _NOTHING) -> None:
    equal([write[2] for write in found["writes"]], list(values), "the writes")
    equal(found.get("seed", _NOTHING) is _NOTHING, seed is _NOTHING, "whether the seed is left out")
    if seed is not _NOTHING:
        equal(found["seed"], seed, "the seed")
        equal(type(found["seed"]), type(seed), "the type of the seed")


# --- the checks -----------------------------------------------------------------------------------------------------


async def ancestors_writes_come_oldest_first(saver: Saver) -> None:
    """The writes of all ancestors are there, oldest first, as (task, channel, value)."""
    chain = _Chain(saver)
    for n in range(4):
        await chain.grow(n)
    await chain.grow()
    found = await chain.history()
    _is(found, 0, 1, 2, 3)
    equal({(len(write), write[1]) for write in found["writes"]}, {(3, CHANNEL)}, "the form of a write")


async def the_targets_own_writes_are_left_out(saver: Saver) -> None:
    """What is stored on the target itself is pending for its next step: no history yet."""
    chain = _Chain(saver)
    await chain.grow("before")
    await chain.grow("pending")
    _is(await chain.history(), "before")


async def the_targets_own_value_is_no_seed(saver: Saver) -> None:
    """The walk begins at the parent: who asks needs no history of a value that is there."""
    chain = _Chain(saver)
    await chain.grow("before", seed=["old"])
    await chain.grow(seed=["own"])
    _is(await chain.history(), "before", seed=["old"])


async def the_nearest_stored_value_is_the_seed(saver: Saver) -> None:
    """The walk ends at the first ancestor with a value; that one's own writes count, older ones are in the value."""
    chain = _Chain(saver)
    await chain.grow("long ago", seed=["far"])
    await chain.grow("in the seed")
    await chain.grow("on the seed", seed=_DeltaSnapshot(["near"]))
    await chain.grow("after")
    await chain.grow()
    _is(await chain.history(), "on the seed", "after", seed=_DeltaSnapshot(["near"]))


async def a_plain_value_is_a_seed_too(saver: Saver) -> None:
    """A thread that had another kind of channel before stored plain values, simple ones included."""
    for value in (["a"], {"k": 1}, "text", 7, 1.5, True, "", 0, []):
        chain = _Chain(saver)
        await chain.grow("old")
        await chain.grow("on", seed=value)
        await chain.grow()
        _is(await chain.history(), "on", seed=value)


async def a_stored_none_is_a_seed(saver: Saver) -> None:
    """None is a value a step may leave: what was written before it does not count."""
    chain = _Chain(saver)
    await chain.grow("old", seed=["older"])
    await chain.grow("on", seed=None)
    await chain.grow()
    _is(await chain.history(), "on", seed=None)


async def without_a_stored_value_there_is_no_seed(saver: Saver) -> None:
    """The walk ends at the root; a root has no history."""
    chain = _Chain(saver)
    root = await chain.grow(1)
    await chain.grow()
    _is(await chain.history(), 1)
    _is(await chain.history(root))


async def a_new_version_without_a_value_ends_no_walk(saver: Saver) -> None:
    """A step of a DeltaChannel gives a new version and stores nothing: the value behind it is still the seed."""
    chain = _Chain(saver)
    await chain.grow("w0", seed=["seed"])
    await chain.grow("w1")
    await chain.grow("w2")
    await chain.grow()
    _is(await chain.history(), "w0", "w1", "w2", seed=["seed"])


async def writes_of_one_checkpoint_are_in_the_order_of_their_tasks(saver: Saver) -> None:
    """By task path, then task, then position: the order in which the step applied them."""
    chain = _Chain(saver)
    place = await chain.grow()
    for task, path, values in (
        ("a-task", "~__pregel_push, 0000000002", ["4", "5"]),
        ("z-task", "~__pregel_push, 0000000001", ["3"]),
        ("m-task", "~__pregel_pull, node", ["1", "2"]),
        ("input", "", ["0"]),
    ):
        await saver.aput_writes(place, [(CHANNEL, value) for value in values], task, path)
    await chain.grow()
    _is(await chain.history(), *"012345")


async def only_the_parent_chain_counts(saver: Saver) -> None:
    """A fork has no part in the other branch's history, although its ids lie between."""
    chain = _Chain(saver)
    root = await chain.grow("root")
    branches = []
    for name, value in (("left", _NOTHING), ("seeded", ["seed"]), ("right", _NOTHING)):
        chain.at = root
        branches.append(await chain.grow(name, seed=value))
    ends = []
    for branch in branches:
        chain.at = branch
        ends.append(await chain.grow("pending"))
    left, seeded, right = [await chain.history(end) for end in ends]
    _is(left, "root", "left")
    _is(seeded, "seeded", seed=["seed"])
    _is(right, "root", "right")


async def parents_are_followed_whatever_their_ids(saver: Saver) -> None:
    """Ids are clock readings of several machines: a parent's may be the greater one."""
    for first, second, target in (("z", "m", "a"), ("a", "m", "z"), ("m", "z", "a")):
        chain = _Chain(saver)
        await chain.grow("w0", seed=["s"], checkpoint_id=first)
        await chain.grow("w1", checkpoint_id=second)
        at = await chain.grow(checkpoint_id=target)
        _is(await chain.history(at), "w0", "w1", seed=["s"])


async def each_channel_ends_at_its_own_seed(saver: Saver) -> None:
    """One call asks for several channels; others are left out, unknown ones have no history."""
    chain = _Chain(saver)
    await chain.grow("a0", channel="a", seed=["a"])
    await chain.grow("b0", channel="b")
    await chain.grow("a1", channel="a")
    await chain.grow("b1", channel="b", seed=["b"])
    await chain.grow("c0", channel="c")
    at = await chain.grow()
    found = await _histories(saver, at, "a", "b", "unknown")
    equal(sorted(found), ["a", "b", "unknown"], "the channels")
    _is(found["a"], "a0", "a1", seed=["a"])
    _is(found["b"], "b1", seed=["b"])
    _is(found["unknown"])


async def no_channels_have_no_history(saver: Saver) -> None:
    """Nothing asked, nothing answered."""
    chain = _Chain(saver)
    at = await chain.grow("w")
    equal(dict(await _histories(saver, at)), {}, "the history of no channels")


async def what_is_not_stored_has_no_history(saver: Saver) -> None:
    """An unknown thread and an unknown checkpoint are no error."""
    chain = _Chain(saver)
    _is(await chain.history())
    await chain.grow("w")
    at = await chain.grow()
    missing: RunnableConfig = {"configurable": at["configurable"] | {"checkpoint_id": str(uuid6())}}
    _is(await chain.history(missing))


async def no_checkpoint_id_means_the_latest(saver: Saver) -> None:
    """Absent, None and empty all mean the same."""
    chain = _Chain(saver)
    await chain.grow("w0", seed=["s"])
    await chain.grow("pending")
    place = {key: value for key, value in chain.at["configurable"].items() if key != "checkpoint_id"}
    for more in ({}, {"checkpoint_id": None}, {"checkpoint_id": ""}):
        at: RunnableConfig = {"configurable": {**place, **more}}
        _is(await chain.history(at), "w0", seed=["s"])


async def threads_and_namespaces_do_not_mix(saver: Saver) -> None:
    """Equal ids in another thread or namespace are others."""
    one = _Chain(saver)
    chains = [one, _Chain(saver, one.thread_id, "sub:1"), _Chain(saver)]
    ids = [str(uuid6()) for _ in range(3)]
    for number, checkpoint_id in enumerate(ids):
        for name, chain in zip("abc", chains, strict=True):
            await chain.grow(f"{name}{number}", checkpoint_id=checkpoint_id)
    for name, chain in zip("abc", chains, strict=True):
        _is(await chain.history(), f"{name}0", f"{name}1")


async def a_long_chain_is_followed_to_its_end(saver: Saver) -> None:
    """However many ancestors are read at once, none is left out or comes twice."""
    chain = _Chain(saver)
    await chain.grow("w0", seed=["s"])
    for n in range(1, _LONG):
        await chain.grow(f"w{n}")
    await chain.grow()
    _is(await chain.history(), *(f"w{n}" for n in range(_LONG)), seed=["s"])


async def large_values_come_back(saver: Saver) -> None:
    """Wherever a saver keeps what is too long for a row."""
    chain = _Chain(saver)
    await chain.grow("x" * 50_000, seed=_DeltaSnapshot(["y" * 50_000]))
    await chain.grow(b"\0" * 50_000)
    await chain.grow()
    _is(await chain.history(), "x" * 50_000, b"\0" * 50_000, seed=_DeltaSnapshot(["y" * 50_000]))


CHECKS = (
    ancestors_writes_come_oldest_first,
    the_targets_own_writes_are_left_out,
    the_targets_own_value_is_no_seed,
    the_nearest_stored_value_is_the_seed,
    a_plain_value_is_a_seed_too,
    a_stored_none_is_a_seed,
    without_a_stored_value_there_is_no_seed,
    a_new_version_without_a_value_ends_no_walk,
    writes_of_one_checkpoint_are_in_the_order_of_their_tasks,
    only_the_parent_chain_counts,
    parents_are_followed_whatever_their_ids,
    each_channel_ends_at_its_own_seed,
    no_channels_have_no_history,
    what_is_not_stored_has_no_history,
    no_checkpoint_id_means_the_latest,
    threads_and_namespaces_do_not_mix,
    a_long_chain_is_followed_to_its_end,
    large_values_come_back,
)
"""All checks; the name of each is the function's, its meaning the docstring."""


def detected(saver: Saver) -> bool:
    """Return whether a saver's own class answers, and not LangGraph's default."""
    method = getattr(type(saver), "aget_delta_channel_history", None)
    return method is not None and method is not BaseCheckpointSaver.aget_delta_channel_history


async def run_delta_history_tests(saver: Saver, on_test_result: OnTestResult | None = None) -> list[CheckResult]:
    """Run the checks on one saver."""
    return await run_checks(CAPABILITY, CHECKS, saver, on_test_result=on_test_result)


async def delta_history_test(
    registered: RegisteredCheckpointer, *, on_test_result: OnTestResult | None = None
) -> Report:
    """Judge a saver that is registered with the kit's ``@checkpointer_test``.

    Args:
        registered: what the decorator returns.
        on_test_result: called after each check, as the kit does.

    Returns:
        The report; ``detected`` is False, and nothing was run, for a saver that inherits LangGraph's default.

    """
    report = Report(registered.name, CAPABILITY)
    async with registered.enter_lifespan(), registered.create() as saver:
        if detected(saver):
            report.checks = await run_delta_history_tests(saver, on_test_result)
    return report


@click.command()
@click.argument("target", metavar="MODULE:ATTRIBUTE")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def main(target: str, as_json: bool) -> None:  # noqa: FBT001 (click hands options over by name)
    """Judge the saver that MODULE:ATTRIBUTE (made with the kit's @checkpointer_test) opens."""
    asyncio.run(delta_history_test(load(target))).finish(as_json=as_json)


if __name__ == "__main__":
    main()
