"""Directories that one user at a time works in: an advisory lock on the directory itself, which leaves no file in it.

The lock belongs to the open descriptor. It is free when whoever took it closed it or died; a child that was forked
from it (not: one that was started with ``exec``) holds on to it.
"""

from __future__ import annotations

import fcntl
import os
from typing import TYPE_CHECKING

from runtime_persist.errors import InvalidInput, WorkspaceBusy

if TYPE_CHECKING:
    from pathlib import Path


def lock(path: Path) -> int:
    """Lock a directory; return the descriptor that holds the lock until it is closed.

    Raises:
        InvalidInput: there is no such directory, or it cannot be locked where it is.
        WorkspaceBusy: somebody else has it.

    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        msg = f"workspace {str(path)!r} cannot be opened as a directory: {error.strerror}"
        raise InvalidInput(msg, path=str(path)) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(descriptor)
        msg = f"workspace {str(path)!r} is in use by another attempt or node; give each its own directory, or wait"
        raise WorkspaceBusy(msg, path=str(path)) from error
    except OSError as error:
        os.close(descriptor)
        msg = f"workspace {str(path)!r} cannot be locked on its file system: {error.strerror}"
        raise InvalidInput(msg, path=str(path)) from error
    return descriptor


def is_free(path: Path) -> bool:
    """Return whether nobody holds the lock of a directory; one that does not exist is free."""
    try:
        descriptor = lock(path)
    except WorkspaceBusy:
        return False
    except InvalidInput:
        return not path.exists()
    os.close(descriptor)
    return True
