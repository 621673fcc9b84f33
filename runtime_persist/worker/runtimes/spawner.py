"""The spawner: a process that has imported everything, opened nothing, and forks one child for each attempt.

A worker has threads and connections, so it cannot be forked itself, and a fresh interpreter needs seconds to import
LangGraph. The spawner has one thread, reaps what it forked, and outlives nobody: when its worker is gone, it kills
every child with its group; when it is gone itself, the kernel kills the children (PR_SET_PDEATHSIG).

    python -m runtime_persist.worker.runtimes.spawner FD
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import select
import signal
import socket
import sys
from typing import Final

from runtime_persist.engine.processes import MARK
from runtime_persist.worker.runtimes import child, messages

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36
_HANDLED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD)


def serve(channel: socket.socket) -> None:
    """Fork children for the other end of ``channel`` until that is gone; then end them all."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # its worker says when it is over, by going
    signal.signal(signal.SIGCHLD, lambda *_: None)
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)  # what a child leaves behind comes here, and is reaped
    waking, woken = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
    children: set[int] = set()
    gc.collect()
    gc.freeze()
    messages.send(channel, {"ready": os.getpid()})
    while True:
        ready, _, _ = select.select([channel.fileno(), waking], [], [])
        if waking in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(waking, 4_096)
            _reap(channel, children)
        if channel.fileno() not in ready:
            continue
        received = messages.receive(channel)
        if received is None:
            break
        message, fds = received
        here, pid = os.getpid(), os.fork()
        if pid == 0:
            _become_child(channel, here, message["mark"], fds)
        for fd in fds:
            os.close(fd)
        children.add(pid)
        messages.send(channel, {"started": pid, "mark": message["mark"]})
    for pid in children:
        _kill_group(pid)


def _reap(channel: socket.socket, children: set[int]) -> None:
    """Reap what has ended. Its group is killed first: until its leader is reaped nobody else gets its number."""
    while True:
        try:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return
        if ended is None:
            return
        mine = ended.si_pid in children
        if mine:
            _kill_group(ended.si_pid)
        _, status = os.waitpid(ended.si_pid, 0)
        if mine:
            children.discard(ended.si_pid)
            messages.send(channel, {"exited": ended.si_pid, "status": os.waitstatus_to_exitcode(status)})


def _kill_group(pid: int) -> None:
    for kill in (os.killpg, os.kill):  # a child that was just forked may have no group of its own yet
        with contextlib.suppress(ProcessLookupError, PermissionError):
            kill(pid, signal.SIGKILL)


def _become_child(channel: socket.socket, spawner: int, mark: str, fds: list[int]) -> None:
    """Leave the spawner behind, and execute one attempt. Does not return."""
    status = 1
    try:
        signal.set_wakeup_fd(-1)
        for number in _HANDLED:
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        os.setsid()
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != spawner:  # it died before the kernel was told to tell us
            return
        channel.close()
        gc.unfreeze()
        own, errors = fds
        os.dup2(errors, 2)
        os.close(errors)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        os.environ[MARK] = mark  # what the attempt starts inherits it
        status = child.main(socket.socket(fileno=own))
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        os._exit(status)


def _prctl(option: int, value: int) -> None:
    ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def warm_up() -> None:
    """Import what a child will need, so that its fork has it; nothing is opened."""
    import runtime_persist.drivers.sqlite

    with contextlib.suppress(ImportError):  # an extra
        import runtime_persist.drivers.postgresql  # noqa: F401


if __name__ == "__main__":
    warm_up()
    serve(socket.socket(fileno=int(sys.argv[1])))
