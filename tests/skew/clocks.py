"""Wall clocks that are wrong: Python's, or all that a process sees."""

from __future__ import annotations

import _sqlite3
import ctypes
import os
import shutil
import sqlite3
import subprocess
import time
from pathlib import Path
from typing import Any

HOUR = 3_600
_ALL = "SHIFT_ALL_CLOCKS"
_SOURCE = Path(__file__).with_name("shift_clock.c")
_kept: list[Any] = []


def preloaded(folder: Path) -> Path | None:
    """Return a library that shifts the C library's wall clock, made in ``folder`` (None: there is no compiler)."""
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if compiler is None:
        return None
    made = folder / "shift_clock.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O2", "-o", str(made), str(_SOURCE), "-ldl"], check=True)
    return made


def all_shifted(folder: Path, hours: int, *, preload: bool = True) -> dict[str, str]:
    """Return the environment of a process whose wall clock is wrong, whoever in it asks for the time.

    With a C compiler by a library that is preloaded; without one :func:`shift_as_told` does it in the process.
    """
    library = preloaded(folder) if preload else None
    if library is None:
        return {_ALL: str(hours * HOUR)}
    return {"LD_PRELOAD": str(library), "SHIFT_CLOCK_SECONDS": str(hours * HOUR)}


def shift_as_told(pythons_hours: int = 0) -> None:
    """Shift Python's clocks, or those that :func:`all_shifted` told this process to shift itself."""
    seconds = int(os.environ.get(_ALL, "0"))
    _shift_python(seconds + pythons_hours * HOUR)
    if seconds:
        _shift_sqlite(seconds)


def _shift_python(seconds: int) -> None:
    """Shift what ids, caches and log lines are made from."""
    real, real_ns = time.time, time.time_ns
    time.time = lambda: real() + seconds  # type: ignore[assignment]
    time.time_ns = lambda: real_ns() + seconds * 1_000_000_000  # type: ignore[assignment]


class _Vfs(ctypes.Structure):
    """The front of ``sqlite3_vfs``: what SQLite asks the operating system through."""

    _fields_ = (
        ("version", ctypes.c_int),
        ("sizes", ctypes.c_int * 2),
        ("pointers", ctypes.c_void_p * 3),  # next, name, data
        ("calls", ctypes.c_void_p * 10),  # open … sleep
        ("now_days", ctypes.c_void_p),
        ("last_error", ctypes.c_void_p),
        ("now_ms", ctypes.c_void_p),
    )


def _shift_sqlite(seconds: int) -> None:
    """Shift the clock of the SQLite in this process (raises where its functions cannot be reached from outside)."""
    library = ctypes.CDLL(_sqlite3.__file__)
    library.sqlite3_vfs_find.restype = ctypes.POINTER(_Vfs)
    vfs = library.sqlite3_vfs_find(None).contents
    kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int64))
    real = kind(vfs.now_ms)

    def shifted(given: Any, out: Any) -> int:
        failed: int = real(given, out)
        out[0] += seconds * 1_000
        return failed

    _kept.append(kind(shifted))  # SQLite has its address from here on
    vfs.now_ms = ctypes.cast(_kept[-1], ctypes.c_void_p).value


def read() -> dict[str, float]:
    """Return what the clocks of this process say, in seconds since 1970."""
    connection = sqlite3.connect(":memory:")
    (sqlite,) = connection.execute("SELECT strftime('%s', 'now')").fetchone()
    connection.close()
    return {"python": time.time(), "sqlite": float(sqlite)}


def shifts(said: dict[str, float]) -> dict[str, int]:
    """Return by how many hours another process's clocks differ from this one's."""
    return {name: round((at - time.time()) / HOUR) for name, at in said.items()}
