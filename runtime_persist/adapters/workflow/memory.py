"""What each invocation loaded: how a saver without a lease tells a stale writer from a fork (design: architecture §5).

The identity of an invocation is LangGraph's run control object, the same from the first load to the last put,
subgraphs included; without a runtime (update_state, direct calls) it is the calling thread or task.
"""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from runtime_persist.model import limits

if TYPE_CHECKING:
    from collections.abc import Mapping

    from runtime_persist.errors import RuntimePersistError


@dataclass(slots=True)
class _Namespace:
    loaded: str | None = None
    fork: bool = False
    last_put: str | None = None


@dataclass(slots=True)
class Invocation:
    """One invocation: who it is, what it loaded and put, and the first write that failed."""

    who: object
    has_runtime: bool
    namespaces: dict[tuple[str, str], _Namespace] = field(default_factory=dict)
    error: RuntimePersistError | None = None


class Expectation(NamedTuple):
    """What a put expects.

    Attributes:
        expects_head: whether the head must be ``head``.
        head: that head (None: there is none yet).
        broken: the put does not follow the invocation's own last put; only a re-put of a stored id is possible.

    """

    expects_head: bool = False
    head: str | None = None
    broken: bool = False


class Invocations:
    """The invocations a saver remembers: the most recently used ones."""

    def __init__(self) -> None:
        """Remember nothing."""
        self._lock = threading.Lock()
        self._known: OrderedDict[int, Invocation] = OrderedDict()

    def of(self, configurable: Mapping[str, Any]) -> Invocation:
        """Return the invocation that a config belongs to."""
        control = getattr(configurable.get("__pregel_runtime"), "control", None)
        who = control if control is not None else _caller()
        with self._lock:
            found = self._known.get(id(who))
            if found is None or found.who is not who:
                # The object itself is kept: it takes no weak reference, and its id must not be reused meanwhile.
                found = self._known[id(who)] = Invocation(who, control is not None)
                if len(self._known) > limits.INVOCATIONS_REMEMBERED_MAX:
                    self._known.popitem(last=False)
            self._known.move_to_end(id(who))
            return found

    def loaded(
        self,
        invocation: Invocation,
        place: tuple[str, str],
        head: str | None,
        *,
        asked: bool,
    ) -> None:
        """Note what a load gave. ``asked``: a checkpoint id was named, or the namespace was listed: a fork."""
        with self._lock:
            if not invocation.has_runtime:
                invocation.namespaces.pop(place, None)
                invocation.namespaces[place] = _Namespace(loaded=head, fork=asked)
                if len(invocation.namespaces) > limits.NAMESPACES_REMEMBERED_MAX:
                    del invocation.namespaces[next(iter(invocation.namespaces))]
                return
            found = invocation.namespaces.get(place)
            if found is None:
                invocation.namespaces[place] = _Namespace(loaded=head, fork=asked)
            elif asked:
                found.fork = True
            elif found.last_put is None:
                found.loaded = head

    def expectation(
        self,
        invocation: Invocation,
        place: tuple[str, str],
        parent: str | None,
        own: str,
    ) -> Expectation:
        """Return what the put of checkpoint ``own`` expects."""
        with self._lock:
            found = invocation.namespaces.get(place)
            if found is None or found.last_put == own:
                return Expectation()
            if found.last_put is not None:
                if parent != found.last_put:
                    return Expectation(broken=True)
                return Expectation() if found.fork else Expectation(expects_head=True, head=parent)
            if found.fork or parent != found.loaded:
                return Expectation()
            return Expectation(expects_head=True, head=parent)

    def put(self, invocation: Invocation, place: tuple[str, str], checkpoint_id: str) -> None:
        """Note a stored put. A direct write (nothing was loaded, no runtime) begins no chain."""
        with self._lock:
            found = invocation.namespaces.get(place)
            if found is None:
                if invocation.has_runtime:
                    invocation.namespaces[place] = _Namespace(fork=True, last_put=checkpoint_id)
                return
            found.last_put = checkpoint_id


def _caller() -> object:
    loop = asyncio._get_running_loop()  # noqa: SLF001 (get_running_loop raises where there is none, which costs more)
    task = None if loop is None else asyncio.current_task(loop)
    return task if task is not None else threading.current_thread()
