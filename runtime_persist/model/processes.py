"""Which process it was: never its pid alone, because a pid is given to another process as soon as the first is gone."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, Self

from runtime_persist.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Mapping

DEAD_STATES = frozenset("ZXx")
"""States of a process that executes nothing any more: it only waits to be reaped."""

_STATE, _GROUP, _START = 0, 2, 19
"""Where they stand behind the name (proc(5): fields 3, 5 and 22)."""


@dataclass(frozen=True, slots=True)
class Stat:
    """What ``/proc/PID/stat`` says of a process.

    Attributes:
        state: one letter (``T``: stopped, ``Z``: a zombie).
        group: its process group.
        start_ticks: when it started, in clock ticks since the boot.

    """

    state: str
    group: int
    start_ticks: int

    @classmethod
    def parsed(cls, text: str) -> Self:
        """Return what a line of ``/proc/PID/stat`` says.

        The name stands in parentheses and may hold anything, parentheses, spaces and newlines too: what counts stands
        behind the last ``)``.

        Raises:
            ValueError: it is no such line.

        """
        _, _, behind = text.rpartition(")")
        found = behind.split()
        if len(found) <= _START or len(found[_STATE]) != 1:
            msg = f"not a line of /proc/PID/stat: {text[:200]!r}"
            raise ValueError(msg)
        return cls(found[_STATE], int(found[_GROUP]), int(found[_START]))

    @property
    def dead(self) -> bool:
        """Return whether it executes nothing any more."""
        return self.state in DEAD_STATES


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a process runs: its pid and start ticks mean the same process only there.

    Attributes:
        host: name of the machine or container.
        machine_id: of the installation (``/etc/machine-id``; "": unknown). Copies of a machine must have their own.
        boot_id: of the kernel's start ("": the platform does not say, so nothing can be proved there).
        namespaces: of pids and of time, in which pids and start ticks are counted.

    """

    host: str
    machine_id: str
    boot_id: str
    namespaces: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessIdentity(Place):
    """A process, so that no other one is ever taken for it.

    Attributes:
        pid: its number, which is given to others later.
        start_ticks: when it started, in clock ticks since the boot.
        group: its process group, which is ended as a whole.

    """

    pid: int
    start_ticks: int
    group: int

    def handle(self) -> dict[str, Any]:
        """Return it as JSON-able fields."""
        return asdict(self)

    @classmethod
    def of(cls, handle: Mapping[str, Any]) -> Self:
        """Return the identity of its fields (others are left alone).

        Raises:
            InvalidInput: a field is missing, or of the wrong type.

        """
        found = {field.name: handle.get(field.name) for field in fields(cls)}
        for field in fields(cls):
            kind = int if field.type == "int" else str
            if type(found[field.name]) is not kind:
                msg = f"not the identity of a process: {field.name} is {found[field.name]!r}"
                raise InvalidInput(msg)
        return cls(**found)  # type: ignore[arg-type]  # their types were looked at

    def rebooted(self, here: Place) -> bool:
        """Return whether this machine has started anew since: then nothing of that boot runs any more."""
        same_machine = self.machine_id != "" and (self.machine_id, self.host) == (here.machine_id, here.host)
        return same_machine and "" not in {self.boot_id, here.boot_id} and self.boot_id != here.boot_id

    def elsewhere(self, here: Place) -> str | None:
        """Return why nothing can be said about it from here (None: it can be looked at)."""
        if not self.boot_id or not here.boot_id:
            return f"process {self.pid} of {self.host}: the platform does not tell one boot from another"
        if self.boot_id != here.boot_id:
            return f"process {self.pid} runs on another machine ({self.host}); this is {here.host}"
        if self.namespaces != here.namespaces:
            return f"process {self.pid} runs in another container of this machine ({self.host}); this is {here.host}"
        return None
