"""What the numbers were measured on."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sqlite3
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from bench.databases import run

if TYPE_CHECKING:
    from runtime_persist.testing.postgres import PostgresServer

_PACKAGES = (
    "langgraph",
    "langgraph-checkpoint",
    "langgraph-checkpoint-postgres",
    "langgraph-checkpoint-sqlite",
    "asyncpg",
    "psycopg",
    "aiosqlite",
    "dbos",
    "procrastinate",
)
_GIB = 1024**3


async def described(server: PostgresServer | None) -> dict[str, str]:
    """Return name -> value."""
    found = {
        "processor": f"{os.cpu_count()} × {_processor()}",
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / _GIB:.0f} GiB",
        "system": f"{platform.system()} {platform.release()}",
        "disk": f"4 KB write and fsync: {_fsync_milliseconds():.2f} ms (median)",
        "Python": platform.python_version(),
        "SQLite": sqlite3.sqlite_version,
        "PostgreSQL": await _postgresql(server),
        "commit": _commit(),
    }
    for package in _PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _fsync_milliseconds() -> float:
    times = []
    with tempfile.TemporaryFile(buffering=0) as file:
        for _ in range(200):
            began = time.perf_counter()
            file.write(bytes(4096))
            os.fsync(file.fileno())
            times.append((time.perf_counter() - began) * 1e3)
    return statistics.median(times)


async def _postgresql(server: PostgresServer | None) -> str:
    return "none" if server is None else (await run(server.socket_dsn(), "SHOW server_version"))[0][0]


def _commit() -> str:
    answer = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],  # noqa: S607 (whichever git there is)
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    )
    return answer.stdout.strip() or "unknown"
