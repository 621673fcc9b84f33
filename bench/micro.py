"""Single operations of the savers: put, put_writes, get_tuple, list; by size of the state and number of callers."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from bench.loads import KB, MB, Chat
from bench.measure import Caller, slice_of
from bench.savers import MEMORY, SAVERS

if TYPE_CHECKING:
    from bench.options import Options
    from bench.savers import Lab, Open

SIZES = (KB, 32 * KB, MB)
CALLERS = (1, 8, 64)
PUT, WRITES_1, WRITES_5, GET, COLD, LIST = OPERATIONS = (
    "put",
    "put_writes 1",
    "put_writes 5",
    "get_tuple",
    "get_tuple with nothing cached",
    "list 10",
)
_READS = {GET, COLD, LIST}
_HISTORY = 12
"""Checkpoints, each with a write, of a thread that is read."""
_READ_THREADS = {KB: 64, 32 * KB: 16, MB: 3}


@dataclass(frozen=True)
class Cell:
    """One operation, one size, so many callers."""

    operation: str
    size: int
    callers: int

    @property
    def name(self) -> str:
        return f"{self.operation}, {shown_size(self.size)}, {self.callers} callers"

    @property
    def worth_it(self) -> bool:
        """Whether it is measured: what nobody would do, and takes long, is left out."""
        if self.operation == COLD:
            return self.callers == 1
        if self.operation == LIST:
            return self.callers == 1 or (self.callers == 8 and self.size < MB)
        if self.size < MB or self.callers == 1:
            return True
        return self.operation == PUT or (self.callers == 8 and self.operation in {WRITES_1, GET})

    @property
    def decides(self) -> bool:
        """Whether a goal is about it: then it is measured in every round, otherwise in every second one."""
        return self.operation in {PUT, WRITES_1, GET} and self.callers in {1, 64}


CELLS = [
    cell
    for operation in OPERATIONS
    for size in SIZES
    for callers in CALLERS
    if (cell := Cell(operation, size, callers)).worth_it
]


def shown_size(size: int) -> str:
    return f"{size // MB} MB" if size >= MB else f"{size // KB} KB"


def cells(options: Options) -> list[Cell]:
    """Return the cells that are wanted; the quick form has the small ones only."""
    wanted = [cell for cell in CELLS if options.wants(cell.name)]
    if options.quick:
        wanted = [cell for cell in wanted if cell.size < MB and cell.callers in {1, 64} and cell.operation != WRITES_5]
    return wanted


async def measure(lab: Lab, options: Options) -> list[dict[str, Any]]:
    """Return a row a saver, cell and round."""
    opened = await lab.open_all(options.savers(SAVERS))
    return await in_turns(lab, options, "micro", opened, cells(options))


async def in_turns(
    lab: Lab, options: Options, part: str, opened: dict[str, Open], chosen: list[Cell]
) -> list[dict[str, Any]]:
    """Measure each cell with one saver right after the other, in another order each round."""
    bench = _Bench(opened)
    rows = []
    order = list(opened)
    for turn in options.rounds_of(part):
        wanted = [cell for cell in chosen if cell.decides or turn % 2 == 0]
        for cell in options.progress(wanted, f"{part}, round {turn + 1}"):
            random.Random(f"{turn} {cell.name}").shuffle(order)
            for key in order:
                found = opened[key]
                if found.saver.owned and cell.operation in _READS:
                    continue  # reading does not depend on who owns the thread
                callers = await bench.callers(key, cell)
                # A peer's put of 1 MB takes 40 ms: a longer slice, or the median is of five.
                seconds = options.seconds * (2 if cell.size == MB and cell.callers == 1 else 1)
                slice_ = await slice_of(lab.machine, callers, seconds, sync=found.saver.sync)
                named = {"saver": key, "operation": cell.operation, "size": cell.size, "callers": cell.callers}
                rows.append(named | {"round": turn} | slice_)
                if found.saver.database == MEMORY and cell.operation not in _READS:
                    for place in range(cell.callers):  # gigabytes of checkpoints would slow Python's own memory down
                        found.inner.delete_thread(thread_of(cell, place))
    return rows


def thread_of(cell: Cell, place: int) -> str:
    """Return the id of the thread that a caller writes."""
    return f"{cell.name} {place}"


class _Bench:
    """The callers of each saver and cell, kept from round to round."""

    def __init__(self, opened: dict[str, Open]) -> None:
        self._opened = opened
        self._callers: dict[tuple[str, Cell], list[Caller]] = {}
        self._history: dict[tuple[str, int], list[Chat]] = {}

    async def callers(self, key: str, cell: Cell) -> list[Caller]:
        if (key, cell) not in self._callers:
            make = self._reading if cell.operation in _READS else self._writing
            self._callers[key, cell] = await make(self._opened[key], cell)
        return self._callers[key, cell]

    async def _writing(self, found: Open, cell: Cell) -> list[Caller]:
        name, _, count = cell.operation.partition(" ")
        callers = []
        for place in range(cell.callers):
            thread_id = thread_of(cell, place)
            chat = Chat(found.inner, thread_id, cell.size)
            await called(found, "put", thread_id, *chat.put())  # the thread is there, everything is warm
            prepare = (lambda chat=chat: chat.writes(int(count))) if count else chat.put
            callers.append(Caller(prepare, found.method(name, thread_id)))
        return callers

    async def _reading(self, found: Open, cell: Cell) -> list[Caller]:
        threads = min(cell.callers, _READ_THREADS[cell.size])
        history = self._history.setdefault((found.saver.key, cell.size), [])
        while len(history) < threads:
            history.append(await thread_with_history(found, f"read {cell.size} {len(history)}", cell.size, _HISTORY))
        operate = found.method("get_tuple")
        if cell.operation == LIST:
            listing = found.method("list")
            operate = lambda config: listing(config, limit=10)  # noqa: E731 (bound here, once)

        def prepare(chat: Chat) -> tuple[Any, ...]:
            if cell.operation == COLD and found.runtime is not None:
                found.runtime.engine.content.cache.clear()
            return (chat.latest,)

        return [Caller(partial(prepare, history[place % threads]), operate) for place in range(cell.callers)]


async def thread_with_history(found: Open, thread_id: str, size: int, checkpoints: int) -> Chat:
    """Return a chat that has so many checkpoints, each with one small write."""
    chat = Chat(found.inner, thread_id, size)
    small = Chat(found.inner, thread_id, KB)
    for _ in range(checkpoints):
        config, *rest = chat.put()
        await called(found, "put", "", config, *rest)
        _, writes, task_id, path = small.writes(1)
        written = {"configurable": {**config["configurable"], "checkpoint_id": rest[0]["id"]}}
        await called(found, "put_writes", "", written, writes, task_id, path)
    return chat


async def called(found: Open, method: str, thread_id: str, *given: Any) -> Any:
    """Call a method of a saver in its form (sync ones on a thread)."""
    operate = found.method(method, thread_id)
    return await (asyncio.to_thread(operate, *given) if found.saver.sync else operate(*given))
