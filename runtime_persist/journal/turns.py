"""The n-th call of a name: in a task, or inside another call. A position that chance decides is refused."""

from __future__ import annotations

import threading
from collections import Counter
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from runtime_persist.errors import OperationOrder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from runtime_persist.journal.place import Place

_TASKS_REMEMBERED = 1_024
_lock = threading.Lock()


class Scope:
    """Counts calls by name. A call that is made inside another one is counted there: that one may not run again."""

    def __init__(self, place: Place, prefix: str = "") -> None:
        """Begin to count in ``place``; ``prefix`` names the call that this is the inside of."""
        self.owned = place.owned
        self.checkpoint_ns = place.checkpoint_ns
        self.prefix = prefix
        self._calls: Counter[str] = Counter()
        self._in_flight: Counter[str] = Counter()

    def enter(self, name: str) -> str:
        """Return the position of a call that begins: ``#0``, then ``#1``.

        Raises:
            OperationOrder: another call of that name is in flight here, so nothing says which of them is which when
                the task runs again.

        """
        with _lock:
            if self._in_flight[name]:
                msg = (
                    f"two calls of operation {name!r} are in flight at the same time in one task (gather, threads): "
                    "which is the first would be decided by chance when the task runs again. Tell them apart by key=, "
                    "or send each to a task of its own"
                )
                raise OperationOrder(msg, name=name)
            self._in_flight[name] += 1
            number = self._calls[name]
            self._calls[name] += 1
        return f"{self.prefix}#{number}"

    def leave(self, name: str) -> None:
        """Note that a call that :meth:`enter` counted is over."""
        with _lock:
            self._in_flight[name] -= 1


_inside: ContextVar[Scope | None] = ContextVar("runtime_persist_inside_operation", default=None)


def scope_of(place: Place) -> Scope:
    """Return where a call is counted: inside the call that makes it, else in this execution of the task."""
    inside = _inside.get()
    if inside is not None and inside.owned is place.owned and inside.checkpoint_ns == place.checkpoint_ns:
        return inside
    with _lock:
        tasks = place.owned.scratch
        key = (place.checkpoint_ns, id(place.scratch), place.node_attempt)
        # The scratchpad itself is kept beside its scope: its id must not be reused while it counts.
        _, scope = tasks.setdefault(key, (place.scratch, Scope(place)))
        tasks.move_to_end(key)
        while len(tasks) > _TASKS_REMEMBERED:
            tasks.popitem(last=False)
    found: Scope = scope
    return found


class Turn:
    """One call: its position among those of its name, or its key.

    Attributes:
        place: where it is made.
        name: the operation's name.
        ordinal: ``#n``, or the key.

    """

    def __init__(self, place: Place, name: str, key: str | None) -> None:
        """Take a turn; :meth:`over` must follow (raises OperationOrder)."""
        self.place = place
        self.name = name
        self._scope = scope_of(place) if key is None else None
        self.ordinal: str = self._scope.enter(name) if self._scope is not None else key or ""
        self._before: Scope | None = None

    def over(self) -> None:
        """Note that the call is over."""
        scope, self._scope = self._scope, None
        if scope is not None:
            scope.leave(self.name)

    def go_in(self) -> None:
        """Count calls that are made from here on, in this context, as made inside this one."""
        self._before = _inside.get()
        _inside.set(Scope(self.place, f"{self.name}{self.ordinal}>"))

    def go_out(self) -> None:
        """Count them where they were counted before."""
        # Not by a token: a generator may be entered in one context and left in another.
        _inside.set(self._before)

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Make the call itself."""
        self.go_in()
        try:
            yield
        finally:
            self.go_out()
