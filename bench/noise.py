"""How much of the machine others took while something was measured.

A slice of a measurement is as good as the machine was quiet. Here "others" is the CPU time that all processes but
ours used, as a share of what the machine has: the machine's time from /proc/stat, less our own processor time and
that of the database server that works for us.
"""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass
from pathlib import Path

NOISY = 0.20
"""Share of the machine above which a slice is measured again, and marked when it stays so."""

_STAT = Path("/proc/stat")
_GLANCE_SECONDS = 0.05
_STEADY_SECONDS = 20.0  # a machine that stayed busy is not waited for again for so long
_TICKS = os.sysconf("SC_CLK_TCK")
_IDLE_FIELDS = (3, 4)  # idle and waiting for a disk
_GUEST_FIELDS = 8  # from here on: time that user and nice have in them already


@dataclass
class Slice:
    """One stretch of time.

    Attributes:
        seconds: how long it was.
        others: share of the machine that other processes took, 0 to 1; None where /proc/stat does not exist.

    """

    seconds: float = 0.0
    others: float | None = None

    @property
    def noisy(self) -> bool:
        return self.others is not None and self.others > NOISY


class Machine:
    """Measures others, and waits for them to be quiet."""

    def __init__(self) -> None:
        self._servers: list[Path] = []
        self._processes: set[str] = set()
        self._waits_again_at = 0.0

    def count_as_ours(self, data_directory: Path) -> None:
        """Count a PostgreSQL server's processes as ours."""
        self._servers.append(data_directory / "postmaster.pid")

    @contextlib.contextmanager
    def counting_process(self, pid: int):
        """Count a process as ours inside the block; it lives at least as long."""
        self._processes.add(str(pid))
        yield
        self._processes.discard(str(pid))

    @contextlib.contextmanager
    def watched(self):
        """Fill the given Slice at the end of the block."""
        found = Slice()
        began, machine, ours = time.perf_counter(), _machine_seconds(), self._our_seconds()
        yield found
        found.seconds = time.perf_counter() - began
        if machine is not None:
            others = _machine_seconds() - machine - (self._our_seconds() - ours)
            found.others = max(0.0, others) / (found.seconds * (os.cpu_count() or 1))

    def wait_until_quiet(self, limit: float = 2.0) -> bool:
        """Wait, at most ``limit`` seconds, for others to be quiet; return whether they may be.

        Where they did not become quiet the noise is steady: the next calls return False at once for a while.
        """
        if time.monotonic() < self._waits_again_at:
            return False
        until = time.monotonic() + limit
        while time.monotonic() < until:
            with self.watched() as glance:
                time.sleep(_GLANCE_SECONDS)
            if not glance.noisy:
                return True
        self._waits_again_at = time.monotonic() + _STEADY_SECONDS
        return False

    def _our_seconds(self) -> float:
        ours = sum(map(_server_seconds, self._servers)) + sum(map(_process_seconds, self._processes))
        return time.process_time() + ours


def _machine_seconds() -> float | None:
    try:
        ticks = [int(word) for word in _STAT.read_text().split("\n", 1)[0].split()[1:]]
    except OSError:
        return None
    return sum(count for place, count in enumerate(ticks[:_GUEST_FIELDS]) if place not in _IDLE_FIELDS) / _TICKS


def _server_seconds(pid_file: Path) -> float:
    """Return the processor time of a server: the postmaster, what it has reaped, and its living children."""
    try:
        postmaster = pid_file.read_text().split("\n", 1)[0]
        children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
    except OSError:
        return 0.0
    return _process_seconds(postmaster, reaped=True) + sum(map(_process_seconds, children))


def _process_seconds(pid: str, *, reaped: bool = False) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return 0.0  # it has ended meanwhile
    return sum(map(int, fields[11 : 15 if reaped else 13])) / _TICKS
