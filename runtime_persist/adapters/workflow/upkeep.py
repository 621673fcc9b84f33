"""Deleting by run, copying and pruning threads: what is chosen here is one command a thread."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from runtime_persist.adapters.workflow import encoding
from runtime_persist.adapters.workflow.writing import delete_thread
from runtime_persist.commands.copy_thread import CopyThread
from runtime_persist.commands.delete_runs_checkpoints import DeleteRunsCheckpoints
from runtime_persist.commands.prune_thread import PruneThread
from runtime_persist.engine.ownership import thread_of
from runtime_persist.errors import StaleWriter
from runtime_persist.model.ids import new_id, thread_id_of
from runtime_persist.queries import history as queries

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from langgraph.checkpoint.serde.base import SerializerProtocol

    from runtime_persist.adapters.workflow.core import SaverContext
    from runtime_persist.engine import Flow
    from runtime_persist.plan import Row

STRATEGIES = ("keep_latest", "delete")
_TRIES = 5
_COUNTERS = "counters_since_delta_snapshot"


def delete_for_runs(saver: SaverContext, run_ids: Sequence[str]) -> Flow[None]:
    """Delete the checkpoints whose metadata names one of the runs, thread by thread."""
    refs = [str(run_id) for run_id in run_ids]
    if not refs:
        return
    engine = saver.core.engine
    threads = yield engine.coordinator.read("threads_of_runs", lambda: queries.threads_of_runs(engine.space, refs))
    for thread_id in threads:
        yield engine.coordinator.commit(
            DeleteRunsCheckpoints(command_id=new_id(), run_refs=tuple(refs), **thread_of(engine, thread_id))
        )
        saver.core.forget_thread(thread_id)


def copy_thread(saver: SaverContext, source: str, target: str) -> Flow[None]:
    """Copy a thread to an empty one."""
    engine = saver.core.engine
    source, target = thread_id_of(source), thread_id_of(target)
    yield engine.coordinator.commit(
        CopyThread(
            command_id=new_id(),
            source_id=source,
            source_hash=engine.coordinator.keys.thread_hash(source),
            **thread_of(engine, target),
        )
    )


def prune(saver: SaverContext, thread_ids: Sequence[str], strategy: str) -> Flow[None]:
    """Prune threads, one transaction each."""
    if isinstance(thread_ids, str):
        msg = f"thread_ids must be a list of thread ids, not the text {thread_ids!r}"
        raise TypeError(msg)
    if strategy not in STRATEGIES:
        msg = f"strategy must be one of {', '.join(STRATEGIES)}, not {strategy!r}"
        raise ValueError(msg)
    for thread_id in [thread_id_of(one) for one in thread_ids]:
        if strategy == "delete":
            yield from delete_thread(saver, thread_id)
        else:
            yield from _keep_latest(saver, thread_id)


def _keep_latest(saver: SaverContext, thread_id: str) -> Flow[None]:
    engine = saver.core.engine
    for left in range(_TRIES, 0, -1):
        heads, rows = yield engine.coordinator.read(
            "inventory", lambda: queries.inventory(engine.space, thread_id), snapshot=True
        )
        choice = _Choice(heads, rows, saver.serde)
        try:
            yield engine.coordinator.commit(
                PruneThread(command_id=new_id(), **choice.fields(), **thread_of(engine, thread_id))
            )
        except StaleWriter:
            if left == 1:
                raise
            continue  # somebody stored a checkpoint meanwhile: choose again
        saver.core.forget_thread(thread_id)
        return


@dataclass(slots=True)
class _Choice:
    """What goes, what stays, and what stays only as history."""

    heads: dict[str, str]
    rows: list[Row]
    serde: SerializerProtocol
    _keep: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    _hide: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    def fields(self) -> dict[str, Any]:
        """Return the fields of the command."""
        by_id = {(row["checkpoint_ns"], row["checkpoint_id"]): row for row in self.rows}
        root = self.heads.get("")
        for ns, head in self.heads.items():
            row = by_id.get((ns, head))
            if row is not None and self._stays(ns, row, root, by_id):
                self._keep[ns].add(head)
                self._history(ns, row, by_id)
        gone: dict[str, list[str]] = defaultdict(list)
        for ns, one in by_id:
            if one not in self._keep[ns] and one not in self._hide[ns]:
                gone[ns].append(one)
        roots: dict[str, list[str]] = defaultdict(list)
        for (ns, one), row in by_id.items():
            if one in self._keep[ns] and row["parent_id"] is not None and row["parent_id"] not in self._keep[ns]:
                roots[ns].append(one)
        return {
            "heads": self.heads,
            "delete": _tuples(gone),
            "hide": _tuples(self._hide),
            "roots": _tuples(roots),
            "empty": tuple(sorted(ns for ns in self.heads if not self._keep[ns])),
        }

    def _stays(self, ns: str, row: Row, root: str | None, by_id: dict[tuple[str, str], Row]) -> bool:
        """Return whether a namespace's head stays: that of a subgraph call goes with the root it started from."""
        if ":" not in ns:
            return True
        parents = encoding.decoded_metadata(row["metadata"], self.serde).get("parents") or {}
        started = parents.get("")
        return started is None or started == root or ("", started) not in by_id

    def _history(self, ns: str, head: Row, by_id: dict[tuple[str, str], Row]) -> None:
        """Keep, hidden, the ancestors back to the nearest stored value of every delta channel of a kept head.

        A head of an old format also needs its parent: the sends it waits for are among the parent's writes.
        """
        metadata: Mapping[str, Any] = {**encoding.decoded_metadata(head["metadata"], self.serde)}
        looking: set[str] = set(metadata.get(_COUNTERS) or ()) - set(encoding.refs_of(head["body"]))
        at = by_id.get((ns, head["parent_id"] or ""))
        if at is not None and encoding.version_of(head["body"], self.serde) < encoding.SENDS_IN_PARENT_BELOW:
            self._hide[ns].add(at["checkpoint_id"])
        seen: set[str] = set()
        while looking and at is not None and at["checkpoint_id"] not in seen:
            seen.add(at["checkpoint_id"])
            self._hide[ns].add(at["checkpoint_id"])
            looking -= set(encoding.refs_of(at["body"]))
            at = by_id.get((ns, at["parent_id"] or ""))


def _tuples(chosen: dict[str, Any]) -> dict[str, tuple[str, ...]]:
    return {ns: tuple(sorted(ids)) for ns, ids in chosen.items() if ids}
