"""Everything a thread left behind, without what differs by nature: ids are replaced by the place they stand at.

A checkpoint is known by its namespace and its position in it, a task by its checkpoint and its position among that
checkpoint's tasks, a namespace by the tasks it is called in. What remains must be equal whatever stored it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from langgraph._internal._constants import NULL_TASK_ID
from langgraph.types import Interrupt

if TYPE_CHECKING:
    from tests.support.way import Way

_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\b[0-9a-f]{32}\b")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+(\+00:00|Z)")
_VERSION = re.compile(r"0*(\d+)\.[\d.e-]+")
_VERSION_DIGITS = 32
_PLACE = {"thread_id", "checkpoint_ns", "checkpoint_id", "checkpoint_map"}
_OBJECT = re.compile(r" at 0x[0-9a-f]+")


def _names_the_run(key: Any, value: Any) -> bool:
    """An owned run is in the metadata of its checkpoints and tasks: the only thing that is more than in memory."""
    return key == "run_id" or (key == "metadata" and isinstance(value, dict) and set(value) == {"run_id"})


class Places:
    """What each id is called."""

    def __init__(self, thread_id: str) -> None:
        self._thread_id = thread_id
        self._names: dict[str, str] = {NULL_TASK_ID: "null"}
        self.counts = True

    def name(self, found: str, called: str) -> None:
        self._names.setdefault(found, called)

    def knows(self, found: str) -> bool:
        return found in self._names

    def text(self, text: str) -> str:
        """Return a text with its ids, times and channel versions replaced."""
        if text == self._thread_id:
            return "<the thread>"
        if text.find(".") == _VERSION_DIGITS and (version := _VERSION.fullmatch(text)):
            return f"<version {version[1]}>"
        return _OBJECT.sub("", _TIME.sub("<time>", _ID.sub(self._called, text)))

    def _without_leaks(self, thing: dict[Any, Any]) -> dict[Any, Any]:
        """The memory saver hands back the config it was asked with, its own object in it: keep what names a place."""
        own = thing.get("configurable")
        if not isinstance(own, dict):
            return thing
        return {**thing, "configurable": {key: value for key, value in own.items() if key in _PLACE}}

    def _called(self, match: re.Match[str]) -> str:
        found = match.group()
        if found not in self._names and self.counts:
            self._names[found] = f"other {len(self._names)}"
        return f"<{self._names.get(found, '?')}>"

    def plain(self, thing: Any) -> Any:
        """Return a thing as texts, numbers, lists and dicts that can be compared."""
        if isinstance(thing, dict):
            thing = self._without_leaks(thing)
            pairs = [(str(key), value) for key, value in thing.items() if not _names_the_run(key, value)]
            return {self.text(key): self.plain(value) for key, value in sorted(pairs, key=lambda pair: pair[0])}
        if isinstance(thing, tuple) and hasattr(thing, "_asdict"):
            return {type(thing).__name__: self.plain(thing._asdict())}
        if isinstance(thing, list | tuple):
            plain = [self.plain(one) for one in thing]
            # What a run returns lists the interrupts of parallel tasks as they came; what is stored has an order.
            return sorted(plain, key=repr) if thing and isinstance(thing[0], Interrupt) and not self.counts else plain
        return self._single(thing)

    def _single(self, thing: Any) -> Any:
        if thing is None or isinstance(thing, bool | int | float):
            return thing
        if isinstance(thing, str):
            return self.text(thing)
        if isinstance(thing, BaseException):
            return [type(thing).__name__, self.text(str(thing))]
        if isinstance(thing, Interrupt):
            return {"Interrupt": self.plain(thing.value), "id": self.text(thing.id)}
        return self.text(repr(thing))


class Told:
    """What is stored of one thread, and the names of its ids."""

    def __init__(self, way: Way, graph: Any, saver: Any, thread_id: str) -> None:
        self._way, self._graph, self._saver, self._thread_id = way, graph, saver, thread_id
        self.places = Places(thread_id)

    async def history(self) -> dict[str, Any]:
        """Return the rows of every namespace as the saver gives them, and the snapshots as the graph gives them."""
        by_ns: dict[str, list[Any]] = defaultdict(list)
        for row in await self._way.all(self._saver, "list", {"configurable": {"thread_id": self._thread_id}}):
            by_ns[row.config["configurable"]["checkpoint_ns"]].append(row)
        found: dict[str, Any] = {}
        for depth in sorted({_depth(ns) for ns in by_ns}):
            unnamed = [ns for ns in by_ns if _depth(ns) == depth]
            for ns in sorted(unnamed, key=lambda one: self._order(one, by_ns[one])):
                rows = sorted(by_ns[ns], key=lambda row: row.config["configurable"]["checkpoint_id"])
                snapshots = await self._snapshots(ns)
                found[self._named(ns, rows, snapshots)] = await self._of(ns, rows, snapshots)
        return found

    def _order(self, ns: str, rows: list[Any]) -> tuple[str, str]:
        """Order namespaces by their tasks; those of tasks that were not stored (durability exit) by what they hold."""
        held = sorted(repr(sorted(row.checkpoint["channel_values"].items())) for row in rows)
        self.places.counts = False
        order = self.places.text(ns), self.places.text(repr(held))
        self.places.counts = True
        return order

    def _named(self, ns: str, rows: list[Any], snapshots: dict[str, Any]) -> str:
        called = self.places.text(ns)
        for n, row in enumerate(rows):
            place = f"{called}#{n}"
            checkpoint_id = row.config["configurable"]["checkpoint_id"]
            self.places.name(checkpoint_id, place)
            tasks = [task.id for task in snapshots[checkpoint_id].tasks]
            writers = [task_id for task_id, _, _ in row.pending_writes]
            for position, task_id in enumerate(dict.fromkeys([*tasks, *writers])):
                self.places.name(task_id, f"{place}.{position}")
        return called

    async def _snapshots(self, ns: str) -> dict[str, Any]:
        states = await self._way.all(self._graph, "get_state_history", self._place(ns))
        found = {state.config["configurable"]["checkpoint_id"]: state for state in states}
        assert len(found) == len(states)
        return found

    def _place(self, ns: str) -> dict[str, Any]:
        return {"configurable": {"thread_id": self._thread_id, "checkpoint_ns": ns}}

    async def _of(self, ns: str, rows: list[Any], snapshots: dict[str, Any]) -> list[Any]:
        assert len(snapshots) == len(rows)
        found = []
        for row in rows:
            state = snapshots[row.config["configurable"]["checkpoint_id"]]
            whole = await self._way(self._graph, "get_state", row.config, subgraphs=True)
            found.append(
                {"row": self.places.plain(row), "state": self.places.plain(state), "whole": self.places.plain(whole)}
            )
        latest = await self._way(self._graph, "get_state", self._place(ns), subgraphs=True)
        return [*found, {"latest": self.places.plain(latest)}]


def _depth(ns: str) -> int:
    return 0 if not ns else 1 + ns.count("|")


def differences(ours: Any, theirs: Any, where: str = "") -> list[str]:
    """Return where two plain things differ (comparing them whole says so too, but not where, and slowly)."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        keys = sorted(ours.keys() | theirs.keys())
        return [
            found for key in keys
            for found in differences(ours.get(key, "absent"), theirs.get(key, "absent"), f"{where}.{key}")
        ]  # fmt: skip
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        return [
            found
            for n, (one, other) in enumerate(zip(ours, theirs, strict=True))
            for found in differences(one, other, f"{where}[{n}]")
        ]
    return [] if ours == theirs and type(ours) is type(theirs) else [f"{where}: {ours!r} is not {theirs!r}"]
