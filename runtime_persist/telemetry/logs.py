"""Structured logs: every record says which run, attempt, epoch, graph and thread it is about.

The facts are carried by a context variable, so nodes, tools and the threads they run on have them too. Values of a
graph never get here, and what looks like a secret is taken out of texts.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import traceback
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from runtime_persist.errors import RuntimePersistError
from runtime_persist.model import limits
from runtime_persist.model.text import redacted, said_by, storable

if TYPE_CHECKING:
    from collections.abc import Mapping, MutableMapping

FIELDS: Final = ("run_id", "attempt_id", "epoch", "graph", "thread_id")
"""Attributes of every record; None outside of an attempt. (``thread`` is the number of Python's own thread.)"""

LEVELS: Final = ("debug", "info", "warning", "error")

_FACTS: Final = "facts"
_LEVEL: Final = "RUNTIME_PERSIST_LOG_JSON"
_MESSAGE_CHARS_MAX: Final = 8_192
_FRAMES_MAX: Final = 20

_attempt: ContextVar[Mapping[str, Any] | None] = ContextVar("runtime_persist_attempt", default=None)


def attempt_facts() -> dict[str, Any]:
    """Return the facts of the attempt whose code is running here: FIELDS, each None outside of one."""
    found = _attempt.get() or {}
    return {name: found.get(name) for name in FIELDS}


class RunLogger(logging.LoggerAdapter[logging.Logger]):
    """Logs with the facts of the attempt that is running, or with those that the call gives in ``extra``."""

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        """Add the facts to the record."""
        given = kwargs.get("extra") or {}
        known = {name: value for name, value in given.items() if name in FIELDS}
        facts = {name: value for name, value in given.items() if name not in FIELDS}
        kwargs["extra"] = {**attempt_facts(), **known, _FACTS: facts}
        return msg, kwargs


def logger(name: str) -> RunLogger:
    """Return the package's logger of that name."""
    return RunLogger(logging.getLogger(name), {})


class RunFilter(logging.Filter):
    """Adds the facts to records of any logger, for a handler whose formatter shows them; it lets everything through."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Add what the record does not have."""
        for name, value in attempt_facts().items():
            if not hasattr(record, name):
                setattr(record, name, value)
        return True


class JsonFormatter(logging.Formatter):
    """One JSON object a line: time (UTC), level, logger, message, the facts of the attempt, the error."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": storable(redacted(record.getMessage()), _MESSAGE_CHARS_MAX),
        }
        known = attempt_facts()
        line |= {name: getattr(record, name, known[name]) for name in FIELDS}
        line |= {name: value for name, value in getattr(record, _FACTS, {}).items() if name not in line}
        if record.exc_info and record.exc_info[1] is not None:
            line["error"] = _error(record.exc_info[1])
        return json.dumps({key: value for key, value in line.items() if value is not None}, default=str)


def _error(error: BaseException) -> dict[str, Any]:
    frames = traceback.extract_tb(error.__traceback__)[-_FRAMES_MAX:]
    return {
        "type": type(error).__qualname__,
        "code": error.code if isinstance(error, RuntimePersistError) else None,
        "message": storable(redacted(said_by(error)), limits.ERROR_TEXT_CHARS_MAX),
        "at": [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames],
    }


def log_as_json(level: str) -> None:
    """Write the records of all loggers of this process from ``level`` on to stderr, as JSON lines.

    The processes that it starts for attempts do so too.
    """
    os.environ[_LEVEL] = level
    log_as_told()


def log_as_told() -> None:
    """Do :func:`log_as_json` in a process that was started by one that does; else nothing."""
    level = os.environ.get(_LEVEL)
    if level not in LEVELS:
        return
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    handler.addFilter(RunFilter())
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level.upper())
