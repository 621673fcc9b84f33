"""What a broken saver is: ours with exactly one fault, and the check of ours that must fail on it.

The async methods call the sync ones, so that a fault is written once; most faults change what one of three hooks is
given: a put (``putting``), a write (``writing``), or what is read (``shown``).
"""

import contextlib
import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.support.through_sync import ThroughSyncMethods
from tests.support.way import SYNC, Way

Check = Callable[..., Any]


class Broken(ThroughSyncMethods):
    """Unbroken as it stands: the control."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.memory: dict[Any, Any] = {}
        """What a fault keeps; shared by all clones."""

    # --- hooks ----------------------------------------------------------------------------------------------------

    def putting(self, config, checkpoint, metadata, new_versions):
        return config, checkpoint, metadata, new_versions

    def writing(self, config, writes, task_id, task_path):
        return config, writes, task_id, task_path

    def shown(self, found):
        return found

    # --- what they are called by ----------------------------------------------------------------------------------

    def put(self, config, checkpoint, metadata, new_versions):
        return super().put(*self.putting(config, checkpoint, metadata, new_versions))

    def put_writes(self, config, writes, task_id, task_path=""):
        super().put_writes(*self.writing(config, writes, task_id, task_path))

    def get_tuple(self, config):
        found = super().get_tuple(config)
        return None if found is None else self.shown(found)

    def list(self, config, **options):
        for found in super().list(config, **options):
            kept = self.shown(found)
            if kept is not None:
                yield kept

    # --- what faults use ------------------------------------------------------------------------------------------

    def stored(self, config):
        """What the unbroken saver reads."""
        return ThroughSyncMethods.get_tuple(self, config)

    def listed(self, config=None, **options):
        """What the unbroken saver lists."""
        return list(ThroughSyncMethods.list(self, config, **options))


@dataclass(frozen=True)
class Fault:
    """A broken saver, the checks that fail on it, in which ways, and with which errors."""

    saver: type[Broken]
    checks: tuple[Check, ...]
    ways: tuple[Way, ...]
    shows: tuple[type[BaseException], ...]

    @property
    def name(self) -> str:
        return self.saver.__name__


FAULTS: list[Fault] = []


def caught_by(*checks: Check, ways: tuple[Way, ...] = (SYNC,), shows: type[BaseException] | None = None):
    """Register a broken saver.

    ``ways``: how it is tried; a fault of a sync method is one of its async twin too. ``shows``: an error that tells,
    besides failed assertions (the saver's own, or what happens to a test that is given nothing).
    """

    def register(saver: type[Broken]) -> type[Broken]:
        errors = (AssertionError, pytest.fail.Exception, *((shows,) if shows else ()))
        FAULTS.append(Fault(saver, checks, ways, errors))
        return saver

    return register


def configured(config: Any, **changed: Any) -> dict[str, Any]:
    """A config with other values; None takes a key away."""
    configurable = {**config["configurable"], **changed}
    return {**config, "configurable": {key: value for key, value in configurable.items() if value is not None}}


def place(found: Any) -> tuple[str, ...]:
    """Thread, namespace and id of what was read or is addressed."""
    config = getattr(found, "config", found)["configurable"]
    return tuple(str(config.get(key) or "") for key in ("thread_id", "checkpoint_ns", "checkpoint_id"))


def with_values(found: Any, values: dict[str, Any]) -> Any:
    """What was read, with other channel values."""
    return found._replace(checkpoint={**found.checkpoint, "channel_values": values})


def replaced(value: Any, change: Callable[[Any], Any]) -> Any:
    """A value with every simple value in it changed."""
    if isinstance(value, dict):
        return {key: replaced(one, change) for key, one in value.items()}
    if type(value) in {list, tuple}:
        return type(value)(replaced(one, change) for one in value)
    return change(value)


@contextlib.contextmanager
def patched(module: Any, name: str, value: Any) -> Iterator[None]:
    """Another value of a name of ours, while a fault calls the unbroken method."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, name, value)
        yield


def fresh(value: Any) -> Any:
    """A copy that shares nothing."""
    return copy.deepcopy(value)
