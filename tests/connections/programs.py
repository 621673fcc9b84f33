"""What real processes do with a file. Forked from a server that has imported everything and opened nothing."""

from __future__ import annotations

import logging
import os
import resource
import signal
import sqlite3
from typing import TYPE_CHECKING, Any

from runtime_persist import Runtime
from runtime_persist.adapters.workflow import WorkflowCheckpointAdapter
from runtime_persist.engine import Engine
from runtime_persist.errors import RuntimePersistError
from tests.support.checkpoints import at, new_checkpoint

if TYPE_CHECKING:
    from tests.support.processes import Word

NOBODY = 65_534


def writer(word: Word, url: str, thread_id: str, count: int, size: int) -> list[str]:
    """Put checkpoints of one thread, one behind the other; return the acknowledged ids."""
    saver = WorkflowCheckpointAdapter.from_conn_string(url)
    word.say("ready")
    word.wait()
    place = at(thread_id)
    acknowledged = []
    for number in range(count):
        made = new_checkpoint({"n": number, "text": os.urandom(size // 2).hex()}, {"n": str(number + 1)})
        place = saver.put(place, made, {"step": number}, {"n": str(number + 1), "text": "1"})
        acknowledged.append(made["id"])
    saver.close()
    return acknowledged


def checkpointer(word: Word, path: str) -> int:
    """Write the log back and cut it, again and again, until the word; return how often that worked."""
    connection = sqlite3.connect(path, isolation_level=None, timeout=0)
    done = 0
    word.say("ready")
    while not word._connection.poll():
        try:
            (busy, *_) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            done += not busy
        except sqlite3.OperationalError:
            pass
    connection.close()
    return done


def locker(word: Word, path: str) -> None:
    """Hold the write lock until the word."""
    connection = sqlite3.connect(path, isolation_level=None, timeout=10)
    connection.execute("BEGIN IMMEDIATE")
    word.say("locked")
    word.wait()
    connection.execute("ROLLBACK")
    connection.close()


def reader(word: Word, path: str) -> int:
    """Hold a read transaction until the word; return what it still sees."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN")
    connection.execute("SELECT count(*) FROM rp_checkpoints").fetchone()
    word.say("reading")
    word.wait()
    (found,) = connection.execute("SELECT count(*) FROM rp_checkpoints").fetchone()
    connection.close()
    return int(found)


def as_nobody(_: Word, url: str) -> str:
    """Open a database without the rights of root, and write; return how that was refused."""
    if os.getuid() == 0:
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    try:
        with Runtime.open(url) as runtime:
            runtime.checkpointer.put(at(), new_checkpoint({"a": 1}), {}, {"a": "1"})
    except RuntimePersistError as error:
        return error.code
    return "accepted"


def limited(word: Word, url: str, size: int) -> list[str]:
    """Write until the file may not grow any more; return the acknowledged ids, and at last the error's code."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    saver = WorkflowCheckpointAdapter.from_conn_string(url)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    place = at()
    said = []
    for number in range(10_000):
        made = new_checkpoint({"text": os.urandom(8_000).hex()}, {"text": str(number + 1)})
        try:
            place = saver.put(place, made, {}, {"text": str(number + 1)})
        except RuntimePersistError as error:
            return [*said, error.code]
        said.append(made["id"])
    return said


def opener(word: Word, url: str) -> list[str]:
    """Open a file twice and write; return the warnings that were logged."""
    said: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.append(record.getMessage())

    logging.getLogger("runtime_persist").addHandler(Keep())
    for _ in range(2):
        saver: Any = WorkflowCheckpointAdapter.from_conn_string(url)
        saver.put(at(str(os.getpid())), new_checkpoint({"a": 1}), {}, {"a": "1"})
        saver.close()
    return said


def setup(word: Word, url: str) -> str:
    """Make the tables at the word; return the secret of the space."""
    word.say("ready")
    word.wait()
    engine = Engine(url)
    secret = engine.coordinator.keys.secret.hex()
    engine.close()
    return secret
