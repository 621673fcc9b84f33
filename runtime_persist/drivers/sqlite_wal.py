"""The WAL-reset fault of SQLite, and who else uses a file.

SQLite 3.7.0 to 3.51.2 can, very rarely, damage a database in WAL mode when connections of two processes (or of two
engines in one process) checkpoint and write at the same instant: a checkpoint misses that the log was begun anew
behind its back, and pages it believes to be written never are. Fixed in 3.51.3 and later, and in the back-ports
3.50.7 and 3.44.6. Source: https://sqlite.org/wal.html#walresetbug and https://sqlite.org/releaselog/3_51_3.html (a
release 3.52.0 was withdrawn; it has the fix).

One process with one engine is not concerned: its only writing connection is also the only one that checkpoints.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
from pathlib import Path

from runtime_persist.dialects.sqlite import has_wal_reset_fault

_log = logging.getLogger("runtime_persist.sqlite")
_OPEN_MARK = "128"  # the byte of the -shm file on which every process that has the database open holds a lock

_warned: set[str] = set()
_lock = threading.Lock()


def used_by_others(path: str, locks: Path = Path("/proc/locks")) -> bool:
    """Return whether another process has the database open, as far as the system tells (Linux).

    The list of locks is read, never the file itself: to close a descriptor of it would drop SQLite's own locks.
    """
    try:
        inode = os.stat(f"{path}-shm").st_ino  # noqa: PTH116 (no descriptor is opened)
        lines = locks.read_text().splitlines()
    except OSError:
        return False
    for line in lines:
        words = line.replace("->", " ").split()
        if len(words) < 8 or words[1] != "POSIX":  # noqa: PLR2004 (number, kind, mode, access, pid, file, first, last)
            continue
        pid, file, first = words[4], words[5], words[6]
        if file.rpartition(":")[2] == str(inode) and first == _OPEN_MARK and pid != str(os.getpid()):
            return True
    return False


def warn_once(path: str) -> None:
    """Log one warning a file and process, when the linked SQLite has the fault and the file is shared."""
    if not has_wal_reset_fault(sqlite3.sqlite_version_info[:3]):
        return
    with _lock:
        if path in _warned:
            return
        _warned.add(path)
    _log.warning(
        "several processes use %s with SQLite %s, which has the WAL-reset fault: in very rare cases it damages the file"
        " (https://sqlite.org/wal.html#walresetbug); use SQLite 3.51.3 or later (or 3.50.7, 3.44.6), or PostgreSQL",
        path,
        sqlite3.sqlite_version,
    )
