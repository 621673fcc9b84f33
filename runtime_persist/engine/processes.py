"""Looking at processes, and ending them for good (Linux, ``/proc``). On other platforms nothing is proved.

A process is told by boot, namespaces, pid and start ticks together (:mod:`runtime_persist.model.processes`). It is
ended with its group, and with what left the group but still carries its mark.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import time
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final

from runtime_persist.model.domains import Proof, Revoked, Unproved
from runtime_persist.model.processes import Place, ProcessIdentity, Stat

if TYPE_CHECKING:
    from collections.abc import Iterator

MARK: Final = "RUNTIME_PERSIST_DOMAIN"
"""Environment variable that names the domains a process belongs to; what it starts inherits it."""

_BETWEEN = ","

_PROC = Path("/proc")
_KILL_SECONDS = 5.0
_PAUSE_SECONDS = 0.005
_LISTED_MAX = 8


class Life(StrEnum):
    """What is known about a process."""

    ALIVE = "alive"
    GONE = "gone"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Seen:
    """What a look at a process showed; ``how`` is the kind of proof when it is gone."""

    life: Life
    saw: str
    how: Proof | None = None


def place() -> Place:
    """Return where this process runs."""
    return Place(
        host=socket.gethostname(),
        machine_id=_words(Path("/etc/machine-id")),
        boot_id=_words(_PROC / "sys/kernel/random/boot_id"),
        namespaces=" ".join(_link(_PROC / "self/ns" / name) for name in ("pid", "time")),
    )


def identify(pid: int) -> ProcessIdentity:
    """Return the identity of a process that is alive, this one's child or itself.

    On a platform without ``/proc`` it has no boot id, and nothing will ever be proved by it.

    Raises:
        ProcessLookupError: there is no such process.

    """
    here = place()
    stat = _stat(pid)
    if stat is None and here.boot_id:
        raise ProcessLookupError(pid)
    group, ticks = (os.getpgid(pid), 0) if stat is None else (stat.group, stat.start_ticks)
    return ProcessIdentity(
        host=here.host,
        machine_id=here.machine_id,
        boot_id=here.boot_id if stat is not None else "",
        namespaces=here.namespaces,
        pid=pid,
        start_ticks=ticks,
        group=group,
    )


def look(identity: ProcessIdentity) -> Seen:
    """Return whether a process is alive. It signals nothing, and says nothing about the rest of its group."""
    here = place()
    if identity.rebooted(here):
        return Seen(Life.GONE, f"{here.host} has started anew since: its boot is {here.boot_id}", Proof.REBOOTED)
    elsewhere = identity.elsewhere(here)
    if elsewhere is not None:
        return Seen(Life.UNKNOWN, elsewhere)
    pid = identity.pid
    stat = _stat(pid)
    if stat is None:
        return _without_stat(pid)
    if stat.start_ticks != identity.start_ticks:
        text = f"pid {pid} is another process now: started at tick {stat.start_ticks}, not {identity.start_ticks}"
        return Seen(Life.GONE, text, Proof.GONE)
    if stat.dead and _threads_dead(pid):
        return Seen(Life.GONE, f"process {pid} has ended (state {stat.state})", Proof.GONE)
    return Seen(Life.ALIVE, f"process {pid} is alive (state {stat.state})")


def end(identity: ProcessIdentity, *, mark: str = "", timeout: float = _KILL_SECONDS) -> Revoked | Unproved:
    """End a process, its group, and what carries its mark; return the proof that nothing of them runs.

    A stopped process is killed, not waited for. A process that cannot be told for sure to belong to it is never
    signalled: its number may have been given to somebody else.

    Args:
        identity: the process.
        mark: value of :data:`MARK` in its environment ("": it was started without one).
        timeout: seconds to wait for the end of what was killed (one that hangs in the kernel does not end).

    """
    first = look(identity)
    if first.life is Life.UNKNOWN:
        return Unproved(first.saw)
    if first.how is Proof.REBOOTED:
        return Revoked(Proof.REBOOTED, first.saw)
    if identity.pid == os.getpid():
        return Unproved(f"process {identity.pid} is this one, which does not end itself")
    hunt = _Hunt(identity, mark)
    until = time.monotonic() + timeout
    while not hunt.over():
        if time.monotonic() >= until:
            return Unproved(f"killed, and still there after {timeout:g} s: {_listed(hunt.left)}")
        time.sleep(_PAUSE_SECONDS)
    if hunt.strangers:
        return Unproved(f"group {identity.group} has processes that may be somebody else's: {_listed(hunt.strangers)}")
    saw = f"{look(identity).saw}; nothing of its group or mark is left"
    return Revoked(Proof.KILLED, f"{saw}; killed: {_listed(hunt.killed)}") if hunt.killed else Revoked(Proof.GONE, saw)


def end_marked(mark: str, *, timeout: float = _KILL_SECONDS) -> Revoked | Unproved:
    """End what carries a mark on this machine; return the proof that nothing of it runs.

    Args:
        mark: value of :data:`MARK` in their environment.
        timeout: seconds to wait for the end of what was killed.

    """
    hunt = _Hunt(None, mark)
    until = time.monotonic() + timeout
    while not hunt.over():
        if time.monotonic() >= until:
            return Unproved(f"killed, and still there after {timeout:g} s: {_listed(hunt.left)}")
        time.sleep(_PAUSE_SECONDS)
    saw = "nothing with its mark is left"
    return Revoked(Proof.KILLED, f"{saw}; killed: {_listed(hunt.killed)}") if hunt.killed else Revoked(Proof.GONE, saw)


def marked(mark: str) -> dict[str, str]:
    """Return the environment of this process with a mark more, for what is started from it."""
    before = os.environ.get(MARK, "")
    return dict(os.environ) | {MARK: f"{before}{_BETWEEN}{mark}" if before else mark}


class _Hunt:
    """The end of a process, if one is named, and of what belongs to it. Each is told by pid and start ticks together.

    Attributes:
        left: what belongs to it and still runs, at the last look.
        strangers: what is in its group, and may have come there after all of it had ended.
        killed: what was signalled.

    """

    def __init__(self, identity: ProcessIdentity | None, mark: str) -> None:
        self._mark = mark
        self._leader = None if identity is None else (identity.pid, identity.start_ticks)
        # One that shares its group with whoever started it is ended alone: the others are not its own.
        self._group = identity.pid if identity is not None and identity.group == identity.pid != os.getpgid(0) else None
        self.left: set[tuple[int, int]] = set()
        self.strangers: set[tuple[int, int]] = set()
        self.killed: set[tuple[int, int]] = set()

    def over(self) -> bool:
        """Look, and kill what is found; return whether nothing was found."""
        leader, number = self._leader, self._group
        found = {(pid, stat.start_ticks): stat for pid, stat in _processes() if pid != os.getpid()}
        alive = {one for one, stat in found.items() if not (stat.dead and _threads_dead(one[0]))}
        group = {one for one in alive if found[one].group == number}
        # While its leader is there, be it as a zombie, the group's number was never free: all of it is its own.
        own = group if leader in found else set()
        marked = {one for one in alive if self._mark and _marked(one[0], self._mark)}
        self.left = alive & (own | marked | self.killed | {leader})
        self.strangers = group - self.left
        if number is not None and leader in self.left:  # all at once: what forks meanwhile does not escape
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(number, signal.SIGKILL)
            self.killed |= own
        self.killed |= {one for one in self.left if _kill(*one)}
        return not self.left


def _kill(pid: int, start_ticks: int) -> bool:
    """Kill exactly this process: the descriptor holds on to it while its start is looked at."""
    try:
        descriptor = os.pidfd_open(pid)
    except (ProcessLookupError, PermissionError):
        return False
    try:
        stat = _stat(pid)
        if stat is None or stat.start_ticks != start_ticks:
            return False
        with contextlib.suppress(ProcessLookupError, PermissionError):
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        return True
    finally:
        os.close(descriptor)


def _without_stat(pid: int) -> Seen:
    """Tell a process that is gone from one that this user may not see."""
    try:
        os.kill(pid, 0)  # the number 0 signals nothing
    except ProcessLookupError:
        return Seen(Life.GONE, f"there is no process {pid}", Proof.GONE)
    except PermissionError:
        return Seen(Life.UNKNOWN, f"process {pid} cannot be looked at by this user")
    stat = _stat(pid)  # it appeared just now
    return Seen(Life.UNKNOWN, f"process {pid} cannot be looked at (state {stat.state if stat else 'unknown'})")


def _processes() -> Iterator[tuple[int, Stat]]:
    for found in _PROC.iterdir():
        if found.name.isdigit():
            pid = int(found.name)
            stat = _stat(pid)
            if stat is not None:
                yield pid, stat


def _stat(pid: int) -> Stat | None:
    try:
        return Stat.parsed((_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace"))
    except (OSError, ValueError):
        return None


def _threads_dead(pid: int) -> bool:
    """Return whether all threads have ended: the first one of a process may end before the others."""
    tasks = _PROC / str(pid) / "task"
    try:
        for thread in tasks.iterdir():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                text = (thread / "stat").read_text(encoding="utf-8", errors="replace")
                if not Stat.parsed(text).dead:
                    return False
    except (FileNotFoundError, ProcessLookupError):
        return True
    return True


def _marked(pid: int, mark: str) -> bool:
    try:
        environment = (_PROC / str(pid) / "environ").read_bytes()
    except OSError:  # another user's, or gone
        return False
    name = f"{MARK}=".encode()
    values = (entry.removeprefix(name) for entry in environment.split(b"\0") if entry.startswith(name))
    return any(mark in value.decode(errors="replace").split(_BETWEEN) for value in values)


def _words(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        return ""


def _link(path: Path) -> str:
    try:
        return str(path.readlink())
    except OSError:
        return ""


def _listed(found: set[tuple[int, int]]) -> str:
    pids = sorted(pid for pid, _ in found)
    return ", ".join(map(str, pids[:_LISTED_MAX])) + (" …" if len(pids) > _LISTED_MAX else "")
