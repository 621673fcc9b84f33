"""The same with a disk that needs 2 ms more for every fsync: what group commit is for.

The disk is simulated by a small library that is compiled and preloaded; it must be there before a process starts, so
this part runs in a process of its own, with a server of its own.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.loads import KB
from bench.micro import PUT, WRITES_1, Cell, in_turns
from bench.noise import Machine
from bench.options import Options
from bench.savers import MEMORY, SAVERS, lab

if TYPE_CHECKING:
    from bench.savers import Lab

SYNC_MS = 2.0
_LIBRARY = Path(__file__).with_name("slow_sync.c")
CELLS = [Cell(PUT, KB, 1), Cell(PUT, KB, 64), Cell(WRITES_1, KB, 64)]
_FSYNCS = 20


async def measure(lab: Lab, options: Options) -> list[dict[str, Any]]:
    """Return rows as the part micro does; none, and why, where the library cannot be made."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None or sys.platform != "linux":
        lab.left_out["slow_disk"] = "needs Linux and a C compiler (cc)"
        return []
    library, answer = lab.folder / "slow_sync.so", lab.folder / "slow_disk.json"
    command = [compiler, "-shared", "-fPIC", "-O2", "-o", str(library), str(_LIBRARY), "-ldl"]
    await asyncio.to_thread(subprocess.run, command, check=True)
    for open_to_the_server in (lab.folder, library):
        open_to_the_server.chmod(0o755)  # it runs as another user when we are root
    slow = os.environ | {"LD_PRELOAD": str(library), "BENCH_SYNC_US": str(int(SYNC_MS * 1e3))}
    child = [sys.executable, "-m", "bench.slow_disk", str(answer), options.as_json()]
    await asyncio.to_thread(subprocess.run, child, check=True, env=slow)
    return json.loads(answer.read_text())


async def _inside(options: Options) -> list[dict[str, Any]]:
    waited = _milliseconds_of_fsync()
    assert waited > SYNC_MS, f"the slow disk is not slow: {waited} ms"
    async with lab(Machine()) as slow:
        savers = [saver for saver in options.savers(SAVERS) if saver.database != MEMORY]
        opened = await slow.open_all(savers)
        rows = await in_turns(slow, options, "slow_disk", opened, [cell for cell in CELLS if options.wants(cell.name)])
    return [row | {"fsync_ms": waited} for row in rows]


def _milliseconds_of_fsync() -> float:
    times = []
    with tempfile.TemporaryFile() as file:
        for _ in range(_FSYNCS):
            file.write(b"x")
            file.flush()
            began = time.perf_counter()
            os.fsync(file.fileno())
            times.append((time.perf_counter() - began) * 1e3)
    return statistics.median(times)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(asyncio.run(_inside(Options.from_json(sys.argv[2])))))
