"""Waking another thread: a system call, and the interpreter's lock goes away. What happens together wakes once.

Held back is only the call: whoever else wakes the same thread meanwhile finds what is waiting there as well.
"""

from __future__ import annotations

import asyncio
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class _Thread(threading.local):
    held: dict[Callable[[], object], None] | None = None
    """What is to be woken later, each once; None: at once."""
    turn_of: asyncio.AbstractEventLoop | None = None
    """Whose turn it is held back for; None: for a block's end."""


_thread = _Thread()


def wake(call: Callable[[], object]) -> None:
    """Call what wakes another thread; later, and once, when this thread holds such calls back."""
    if _thread.held is None:
        call()
        return
    _thread.held[call] = None
    if _thread.turn_of is not None and _thread.turn_of is not _running():
        release()  # that loop was stopped before its turn ended


def release() -> None:
    """Call what is held back: whoever blocks this thread must do so before."""
    held, _thread.held, _thread.turn_of = _thread.held, None, None
    for call in held or ():
        call()


@contextmanager
def held() -> Iterator[None]:
    """Hold back what this thread wakes until the end of the block."""
    if _thread.held is not None:
        yield
        return
    _thread.held = {}
    try:
        yield
    finally:
        release()


def hold_for_this_turn() -> None:
    """Hold back what this thread wakes while its event loop goes on with what is ready; do nothing without a loop."""
    loop = _running()
    if loop is None or (_thread.held is not None and _thread.turn_of in (None, loop)):
        return
    release()
    _thread.held, _thread.turn_of = {}, loop
    loop.call_soon(release)


def _running() -> asyncio.AbstractEventLoop | None:
    return asyncio._get_running_loop()  # noqa: SLF001 (get_running_loop raises where there is none, which costs more)
