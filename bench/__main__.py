"""Time and throughput of the savers, interleaved in one run: only ratios within one table count.

    python -m bench [--rounds 5] [--seconds 0.4] [--size 1024]

Measured: put, put_writes and get_tuple of one caller, sync and async, on a SQLite file; and on PostgreSQL when one can
be started. Peers take part when they are installed. fsync is on everywhere.
"""

import argparse
import asyncio
import statistics
import tempfile
import time
from pathlib import Path

from langchain_core.messages import HumanMessage
from langgraph.checkpoint.base import empty_checkpoint, uuid6
from rich.console import Console
from rich.progress import track
from rich.table import Table

from bench.savers import sqlite_savers, with_postgresql

OPERATIONS = ("put", "put_writes", "get_tuple")


class Load:
    """A thread whose next checkpoint appends one message; the other ones are unchanged."""

    def __init__(self, thread_id, size):
        self.config = {"configurable": {"thread_id": thread_id, "checkpoint_ns": ""}}
        self.message = HumanMessage("word " * max(1, size // 5))
        self.step = 0

    def next(self, saver):
        self.step += 1
        version = saver.get_next_version(None if self.step == 1 else self.version, None)
        self.version = version
        checkpoint = empty_checkpoint() | {
            "id": str(uuid6(clock_seq=self.step)),
            "channel_values": {"messages": [self.message]},
            "channel_versions": {"messages": version},
        }
        return self.config, checkpoint, {"source": "loop", "step": self.step, "parents": {}}, {"messages": version}


def measure_sync(saver, operation, load, seconds):
    count, end = 0, time.perf_counter() + seconds
    began = time.perf_counter()
    while time.perf_counter() < end:
        if operation == "put":
            load.config = saver.put(*load.next(saver))
        elif operation == "put_writes":
            saver.put_writes(load.config, [("messages", load.message)], f"task-{load.step}-{count}")
        else:
            saver.get_tuple({"configurable": {"thread_id": load.config["configurable"]["thread_id"]}})
        count += 1
    return (time.perf_counter() - began) / count


async def measure_async(saver, operation, load, seconds):
    count, end = 0, time.perf_counter() + seconds
    began = time.perf_counter()
    while time.perf_counter() < end:
        if operation == "put":
            load.config = await saver.aput(*load.next(saver))
        elif operation == "put_writes":
            await saver.aput_writes(load.config, [("messages", load.message)], f"task-{load.step}-{count}")
        else:
            await saver.aget_tuple({"configurable": {"thread_id": load.config["configurable"]["thread_id"]}})
        count += 1
    return (time.perf_counter() - began) / count


async def run(savers, arguments):
    """Return saver -> operation -> seconds of each round; savers take turns inside a round."""
    found = {saver.name: {operation: [] for operation in OPERATIONS} for saver in savers}
    loads = {}
    for _ in track(range(arguments.rounds), description=savers[0].database):
        for operation in OPERATIONS:
            for one in savers:
                load = loads.setdefault((one.name, operation), Load(f"{operation}-{one.name}", arguments.size))
                if load.step == 0:
                    saved = (
                        one.saver.put(*load.next(one.saver))
                        if one.sync
                        else await one.saver.aput(*load.next(one.saver))
                    )
                    load.config = saved
                if one.sync:
                    seconds = await asyncio.to_thread(measure_sync, one.saver, operation, load, arguments.seconds)
                else:
                    seconds = await measure_async(one.saver, operation, load, arguments.seconds)
                found[one.name][operation].append(seconds)
    return found


def show(console, database, savers, found):
    table = Table(title=f"{database}: milliseconds (median); × = peer / ours", title_justify="left")
    table.add_column("saver")
    for operation in OPERATIONS:
        table.add_column(operation, justify="right")
    median = {n: {o: statistics.median(t) for o, t in by.items()} for n, by in found.items()}
    for one in savers:
        ours = next(s.name for s in savers if s.ours and s.sync == one.sync)
        cells = []
        for operation in OPERATIONS:
            value = median[one.name][operation]
            ratio = "" if one.ours else f" ({value / median[ours][operation]:.2f}×)"
            cells.append(f"{value * 1e3:.3f}{ratio}")
        table.add_row(("[bold]" if one.ours else "") + one.name, *cells)
    console.print(table)


def main():
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5, help="rounds (default 5)")
    parser.add_argument("--seconds", type=float, default=0.4, help="seconds of one slice (default 0.4)")
    parser.add_argument("--size", type=int, default=1024, help="bytes of one message (default 1024)")
    arguments = parser.parse_args()
    console = Console()

    async def everything():
        with tempfile.TemporaryDirectory() as folder:
            async with sqlite_savers(Path(folder)) as savers:
                show(console, "SQLite", savers, await run(savers, arguments))
        async with with_postgresql(console) as savers:
            if savers:
                show(console, "PostgreSQL", savers, await run(savers, arguments))

    asyncio.run(everything())


if __name__ == "__main__":
    main()
