"""Deleting by run, copying and pruning threads: what is chosen here is one command a thread."""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from typing import TYPE_CHECKING, Any

from runtime_persist.adapters.workflow import encoding, snapshots
from runtime_persist.adapters.workflow.reading import in_thread
from runtime_persist.adapters.workflow.writing import delete_thread
from runtime_persist.commands.copy_thread import CopyThread
from runtime_persist.commands.delete_runs_checkpoints import DeleteRunsCheckpoints
from runtime_persist.commands.expire_delete_marks import ExpireDeleteMarks
from runtime_persist.commands.prune_thread import PruneThread
from runtime_persist.engine.requests import thread_of
from runtime_persist.errors import InvalidInput, StaleWriter
from runtime_persist.model import limits
from runtime_persist.model.ids import new_id, thread_id_of
from runtime_persist.queries import history as queries

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langgraph.pregel import Pregel

    from runtime_persist.adapters.workflow.core import SaverContext
    from runtime_persist.commands.prune_thread import Snapshot
    from runtime_persist.coordinator import CommitReceipt
    from runtime_persist.engine import Flow
    from runtime_persist.plan import Row
    from runtime_persist.queries.history import Inventory

STRATEGIES = ("keep_latest", "delete")
_TRIES = 5
_DAY_US = 86_400_000_000


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


def expire_delete_marks(saver: SaverContext, days: float) -> Flow[int]:
    """Forget which threads were deleted that long ago, some marks a transaction; return how many."""
    kept_us = _days_us(days)
    engine, expired = saver.core.engine, 0
    while True:
        receipt: CommitReceipt = yield engine.coordinator.commit(
            ExpireDeleteMarks(
                space=engine.space,
                command_id=new_id(),
                kept_us=kept_us,
                rows_max=limits.DELETE_MARKS_ROWS_MAX,
            )
        )
        found = int(receipt.result["expired"])
        expired += found
        if found < limits.DELETE_MARKS_ROWS_MAX:
            return expired


def _days_us(days: object) -> int:
    if isinstance(days, int | float) and 0 <= days <= limits.DELETE_MARKS_KEPT_DAYS_MAX:
        return int(days * _DAY_US)
    msg = f"days must be a number from 0 to {limits.DELETE_MARKS_KEPT_DAYS_MAX:g}, not {days!r}"
    raise InvalidInput(msg, days=repr(days))


def prune(
    saver: SaverContext,
    thread_ids: Sequence[str],
    strategy: str,
    graph: Pregel[Any, Any, Any, Any] | None = None,
) -> Flow[None]:
    """Prune threads, one transaction each; with their graph no history of DeltaChannels needs to stay."""
    if isinstance(thread_ids, str):
        msg = f"thread_ids must be a list of thread ids, not a str: {thread_ids!r}"
        raise TypeError(msg)
    if strategy not in STRATEGIES:
        msg = f"strategy must be one of {', '.join(STRATEGIES)}, not {strategy!r}"
        raise ValueError(msg)
    for thread_id in [thread_id_of(one) for one in thread_ids]:
        if strategy == "delete":
            yield from delete_thread(saver, thread_id)
        else:
            yield from _keep_latest(saver, thread_id, graph)


def _keep_latest(saver: SaverContext, thread_id: str, graph: Pregel[Any, Any, Any, Any] | None) -> Flow[None]:
    core, engine = saver.core, saver.core.engine
    for left in range(_TRIES, 0, -1):
        found = yield engine.coordinator.read(
            "inventory", lambda: queries.inventory(engine.space, thread_id), snapshot=True
        )
        choice = _Choice(found, saver)
        try:
            if graph is not None:
                # On a thread of its own: it runs the graph's reducers, and what it loads is no load of the caller's.
                yield from in_thread(partial(choice.rewrite, graph, thread_id))
            yield engine.coordinator.commit(
                PruneThread(command_id=new_id(), **choice.fields(), **thread_of(engine, thread_id))
            )
        except StaleWriter:
            if left == 1:
                raise
            continue  # somebody stored a checkpoint meanwhile: choose again
        core.forget_thread(thread_id)
        return


class _Choice:
    """What goes, what stays, and what stays only as history."""

    def __init__(self, found: Inventory, saver: SaverContext) -> None:
        self._saver = saver
        self._heads = found.heads
        self._open_runs = found.open_runs
        self._rows: dict[tuple[str, str], Row] = {
            (row["checkpoint_ns"], row["checkpoint_id"]): row for row in found.rows
        }
        self._snapshots: list[Snapshot] = []
        self._hide: dict[str, set[str]] = defaultdict(set)
        self._keep: dict[str, set[str]] = defaultdict(set)
        for ns, head in self._heads.items():
            row = self._rows.get((ns, head))
            if row is not None and self._stays(ns, row):
                self._keep[ns].add(head)

    def rewrite(self, graph: Pregel[Any, Any, Any, Any], thread_id: str) -> None:
        """Make the heads that stay hold the values of their DeltaChannels."""
        for row in self._kept():
            channels = snapshots.without_value(row, self._saver)
            new = snapshots.of_head(self._saver, graph, thread_id, row, channels) if channels else None
            if new is not None:
                self._snapshots.append(new)
                where = (row["checkpoint_ns"], row["checkpoint_id"])
                self._rows[where] = {**row, "body": new.row.body, "metadata": new.row.metadata}

    def fields(self) -> dict[str, Any]:
        """Return the fields of the command."""
        for row in self._kept():
            self._history(row)
        self._evidence()
        gone: dict[str, list[str]] = defaultdict(list)
        for ns, one in self._rows:
            if one not in self._keep[ns] and one not in self._hide[ns]:
                gone[ns].append(one)
        roots: dict[str, list[str]] = defaultdict(list)
        for row in self._kept():
            ns, parent = row["checkpoint_ns"], row["parent_id"]
            if parent is not None and parent not in self._keep[ns]:
                roots[ns].append(row["checkpoint_id"])
        return {
            "heads": self._heads,
            "delete": _tuples(gone),
            "hide": _tuples(self._hide),
            "roots": _tuples(roots),
            "empty": tuple(sorted(ns for ns in self._heads if not self._keep[ns])),
            "snapshots": tuple(self._snapshots),
        }

    def _kept(self) -> list[Row]:
        return [row for (ns, one), row in self._rows.items() if one in self._keep[ns]]

    def _stays(self, ns: str, row: Row) -> bool:
        """Return whether a namespace's head stays: that of a subgraph call goes with the root it started from."""
        if ":" not in ns:
            return True
        parents = encoding.decoded_metadata(row["metadata"], self._saver.serde).get("parents") or {}
        started = parents.get("")
        return started is None or started == self._heads.get("") or ("", started) not in self._rows

    def _history(self, head: Row) -> None:
        """Keep, hidden, the ancestors back to the nearest stored value of every delta channel of a kept head.

        A head of an old format also needs its parent: the sends it waits for are among the parent's writes.
        """
        ns = head["checkpoint_ns"]
        looking = snapshots.without_value(head, self._saver)
        at = self._rows.get((ns, head["parent_id"] or ""))
        if at is not None and encoding.version_of(head["body"], self._saver.serde) < encoding.SENDS_IN_PARENT_BELOW:
            self._hide[ns].add(at["checkpoint_id"])
        seen: set[str] = set()
        while looking and at is not None and at["checkpoint_id"] not in seen:
            seen.add(at["checkpoint_id"])
            self._hide[ns].add(at["checkpoint_id"])
            looking -= set(encoding.refs_of(at["body"]))
            at = self._rows.get((ns, at["parent_id"] or ""))

    def _evidence(self) -> None:
        """Keep, hidden, one checkpoint of a run that goes on later and of which nothing else would stay.

        A person edited the state since: that the run has begun, and is not to be given its input again, is only
        known by what it stored.
        """
        stays = {
            row["run_id"] for (ns, one), row in self._rows.items() if one in self._keep[ns] or one in self._hide[ns]
        }
        for run_id in self._open_runs - stays:
            own = [where for where, row in self._rows.items() if row["run_id"] == run_id]
            if own:
                ns, newest = max(own, key=lambda where: where[1])
                self._hide[ns].add(newest)


def _tuples(chosen: dict[str, Any]) -> dict[str, tuple[str, ...]]:
    return {ns: tuple(sorted(ids)) for ns, ids in chosen.items() if ids}
