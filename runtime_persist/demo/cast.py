"""The processes of the demo: workers, and the card processor. All are real, and none is left behind."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
import urllib.request
from typing import TYPE_CHECKING, Any

from runtime_persist.demo import stage

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LEASE_SECONDS = 2.0
_PATIENCE_SECONDS = 40.0


class DemoFailed(Exception):
    """Something the demo waits for did not come."""


class WorkerProcess:
    """A worker in a process of its own."""

    def __init__(self, name: str, url: str, port: int, log: Path, *, cue: str = "") -> None:
        """Start it; with ``cue`` it stops at that place and says so."""
        self.name = name
        self._heard, tell = os.pipe()
        hear, self._word = os.pipe()
        environment = {
            **os.environ,
            stage.PORT: str(port),
            stage.CUE: cue,
            stage.TELL: str(tell),
            stage.HEAR: str(hear),
        }
        command = [
            sys.executable, "-m", "runtime_persist.cli", "worker", "runtime_persist.demo.agent:registry",
            "--url", url, "--lease-ttl", str(LEASE_SECONDS), "--poll", "0.05",
        ]  # fmt: skip
        with log.open("ab") as output:
            self.process = subprocess.Popen(  # noqa: S603 (our own command line)
                command,
                env=environment,
                pass_fds=(tell, hear),
                stdout=output,
                stderr=output,
            )
        os.close(tell)
        os.close(hear)

    def wait_for_line(self) -> str:
        """Return the next line the worker says at its cue."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        said = b""
        while not said.endswith(b"\n"):
            ready, _, _ = select.select([self._heard], [], [], max(0.0, deadline - time.monotonic()))
            part = os.read(self._heard, 4096) if ready else b""
            if not part:
                msg = f"worker {self.name} did not get to its cue (exit code {self.process.poll()})"
                raise DemoFailed(msg)
            said += part
        return said.decode().strip()

    def send(self, number: signal.Signals) -> None:
        """Send the process a signal."""
        self.process.send_signal(number)

    def give_the_word(self) -> None:
        """Let a worker that waits at its cue go on."""
        os.write(self._word, b"!")

    def end(self, *, kill: bool = False) -> None:
        """End the process, kindly unless ``kill``, and wait for it."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL if kill else signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(timeout=10)
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for descriptor in (self._heard, self._word):
            with contextlib.suppress(OSError):
                os.close(descriptor)


@contextlib.contextmanager
def card_processor() -> Iterator[int]:
    """Start the card processor and give its port; it ends with the block."""
    process = subprocess.Popen(
        [sys.executable, "-m", "runtime_persist.demo.effect_server"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        if process.stdin is None or process.stdout is None:
            msg = "the card processor has no pipes"
            raise DemoFailed(msg)
        yield int(process.stdout.readline())
    finally:
        if process.stdin is not None:
            process.stdin.close()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def charges(port: int) -> dict[str, Any]:
    """Return what the card processor recorded."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/") as reply:
        log: dict[str, Any] = json.loads(reply.read())
        return log
