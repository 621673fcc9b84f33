"""Processes that have children: they show what is ended with a process, and what is not."""

import contextlib
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from runtime_persist.engine.processes import MARK
from tests.fixtures.raw import wait_until

# A leader that starts a child in its group and one in a session of its own, says their pids, and then works on.
_LEADER = """
import subprocess, sys
child = [sys.executable, "-S", "-c", "import signal; signal.pause()"]
own = subprocess.Popen(child, env={} if {clean} else None)
left = subprocess.Popen(child, start_new_session=True)
print(own.pid, left.pid, flush=True)
import signal
signal.pause()
"""


@dataclass
class Family:
    """A process and its children: ``member`` in its group, ``runaway`` in a session of its own."""

    leader: subprocess.Popen[str]
    member: int
    runaway: int

    @property
    def pids(self) -> list[int]:
        return [self.leader.pid, self.member, self.runaway]

    def lose_leader(self) -> None:
        """End the leader alone."""
        self.leader.kill()
        self.leader.wait()


@dataclass
class Families:
    """All that were started."""

    made: list[Family] = field(default_factory=list)

    def start(self, mark: str = "", *, clean: bool = False) -> Family:
        """Start a family; ``clean``: the member has no environment, so no mark."""
        env = dict(os.environ) | ({MARK: mark} if mark else {})
        code = _LEADER.replace("{clean}", str(clean))
        leader = subprocess.Popen(
            [sys.executable, "-S", "-c", code],
            env=env,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert leader.stdout is not None
        member, runaway = map(int, leader.stdout.readline().split())
        self.made.append(Family(leader, member, runaway))
        return self.made[-1]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for family in self.made:
            for pid in family.pids:
                if alive(pid):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
            family.leader.wait()
            if family.leader.stdout is not None:
                family.leader.stdout.close()


def state(pid: int) -> str:
    """The state letter of a process, ``-`` when there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return "-"


def alive(pid: int) -> bool:
    return state(pid) not in "-ZX"


def stop(pid: int) -> None:
    """SIGSTOP, and wait until it is stopped."""
    os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: state(pid) == "T", "it is stopped")
