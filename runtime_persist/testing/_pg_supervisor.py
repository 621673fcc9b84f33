"""The process that owns one PostgreSQL server and outlives whoever started it.

Run as a script (``python -I -S _pg_supervisor.py <json>``); it imports nothing of this package. Its standard
input is the reading end of a FIFO: every user of the server holds the FIFO open for writing, so the kernel
itself counts the users. When the last one has let go, by `stop` or by any kind of death, SIGKILL included,
the poll below reports it; the server is stopped and its folder removed.

On standard output it answers the starter once: ``ready``, or ``failed`` and the end of the log.
"""

import contextlib
import ctypes
import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

READY = b"ready to accept connections"
PR_SET_PDEATHSIG = 1
SHUTDOWN_SECONDS = 10.0
LOG_TAIL = 4000  # bytes
HOLDERS_FD = 0
REPLY_FD = 1


def detach() -> None:
    """Go on as an orphan in a session of its own: no terminal signal reaches it, nobody has to reap it."""
    if os.fork():
        os._exit(0)
    os.setsid()


def die_with_parent() -> None:
    """Let the kernel stop the server when even this process is killed (Linux only).

    Runs between fork and exec, after the user was changed: a change of user clears the setting.
    """
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGQUIT)


def start(command: list[str], spec: dict[str, Any]) -> "subprocess.Popen[bytes]":
    """Start a program with its log on a pipe: end of file there means that all its processes are gone."""
    return subprocess.Popen(  # noqa: S603 - the command was made by the launcher
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        cwd=spec["root"],
        user=spec["user"],
        group=spec["group"],
        extra_groups=[] if spec["user"] is not None else None,
        preexec_fn=die_with_parent if sys.platform == "linux" else None,  # noqa: PLW1509 - one thread only
    )


def initialise(spec: dict[str, Any], log_fd: int) -> bool:
    """Make the data directory; what went wrong is in the log."""
    process = start(spec["initdb"], spec)
    _, errors = process.communicate()
    os.write(log_fd, errors)
    return process.returncode == 0


def nobody_left(lock_fd: int, state_file: Path) -> bool:
    """Whether the last user has really gone; if so nobody can join any more.

    Joining happens under the same lock: either the newcomer's writing end is seen here, or the newcomer
    finds no state file and starts a server of its own.
    """
    fcntl.flock(lock_fd, fcntl.LOCK_EX)
    try:
        poll = select.poll()
        poll.register(HOLDERS_FD, 0)
        if not poll.poll(0):
            return False
        state_file.unlink(missing_ok=True)
        return True
    finally:
        fcntl.flock(lock_fd, fcntl.LOCK_UN)


def reply(text: bytes) -> None:
    """Answer the starter, who may be dead already, and close the line."""
    with contextlib.suppress(OSError):
        os.write(REPLY_FD, text)
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, REPLY_FD)
    os.close(null)


def watch(server: "subprocess.Popen[bytes]", log_fd: int, lock_fd: int, state_file: Path) -> bool:
    """Copy the log and answer when the server is up.

    Return when nobody uses it any more (True), or when it has ended by itself (False).
    """
    assert server.stderr is not None  # noqa: S101 - asked for as a pipe above
    pipe = server.stderr.fileno()
    poll = select.poll()
    poll.register(pipe, select.POLLIN)
    poll.register(HOLDERS_FD, 0)  # only POLLHUP: nobody writes anything
    answered, tail = False, b""
    while True:
        for fd, _ in poll.poll():
            if fd == HOLDERS_FD:
                if nobody_left(lock_fd, state_file):
                    return True
                continue
            chunk = os.read(pipe, 65536)
            if not chunk:
                return False
            os.write(log_fd, chunk)
            tail = (tail + chunk)[-1024:]
            if not answered and READY in tail:
                answered = True
                reply(b"ready")


def stop_server(server: "subprocess.Popen[bytes]") -> None:
    """Stop without saving anything (SIGQUIT: the data is thrown away), by force if that takes too long."""
    assert server.stderr is not None  # noqa: S101
    with contextlib.suppress(ProcessLookupError):
        server.send_signal(signal.SIGQUIT)
    # Backends may outlive the postmaster for a moment; each of them holds the log pipe.
    poll = select.poll()
    poll.register(server.stderr.fileno(), select.POLLIN)
    while poll.poll(SHUTDOWN_SECONDS * 1000):
        if not os.read(server.stderr.fileno(), 65536):
            break
    with contextlib.suppress(ProcessLookupError):
        server.kill()
    server.wait()


def serve(spec: dict[str, Any], log_fd: int) -> None:
    """One server's whole life. A reply after ``ready`` goes nowhere: the last line is for failed starts."""
    lock_fd = os.open(spec["lock_file"], os.O_RDWR)
    if initialise(spec, log_fd):
        server = start(spec["postgres"], spec)
        try:
            if watch(server, log_fd, lock_fd, Path(spec["state_file"])):
                return
        finally:
            stop_server(server)
    reply(b"failed\n" + Path(spec["log_file"]).read_bytes()[-LOG_TAIL:])


def main() -> None:
    """Serve, then remove the server's folder, whatever happened."""
    spec = json.loads(sys.argv[1])
    detach()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    # Held until this process ends: `stop` waits for it.
    alive_fd = os.open(spec["alive_file"], os.O_RDWR)
    fcntl.flock(alive_fd, fcntl.LOCK_EX)
    log_fd = os.open(spec["log_file"], os.O_WRONLY | os.O_APPEND)
    try:
        serve(spec, log_fd)
    except OSError as error:
        reply(f"failed\n{error}".encode())
    finally:
        shutil.rmtree(spec["root"], ignore_errors=True)


if __name__ == "__main__":
    main()
