"""What other processes do with stored values. They have not imported what the test has."""

import importlib
import sys
from typing import Any

from runtime_persist import Runtime
from runtime_persist.adapters.workflow import WorkflowCheckpointAdapter, register_upgrade
from runtime_persist.errors import RuntimePersistError
from tests.support.processes import Word
from tests.values.graphs import at, keeps


def looks(word: Word, url: str) -> list[str]:
    """Compare every stored value with the one it was; return the names of those that differ."""
    kinds = importlib.import_module("tests.values.kinds")
    wrong = []
    with WorkflowCheckpointAdapter.from_conn_string(url) as saver:
        for name, value in kinds.VALUES.items():
            found = saver.get_tuple(at(name)).checkpoint["channel_values"]["value"]
            if not kinds.same(found, value):
                wrong.append(f"{name}: {found!r}")
    return wrong


def stores(word: Word, url: str, folder: str) -> None:
    """Store what the shop of that folder makes, one thread a value."""
    sys.path.insert(0, folder)
    shop = importlib.import_module("shop")
    with WorkflowCheckpointAdapter.from_conn_string(url) as saver:
        for name, value in shop.VALUES.items():
            keeps(lambda value=value: value, checkpointer=saver).invoke({}, at(name))


def loads(word: Word, url: str, names: list[str], folder: str | None, *, upgrades: bool = False) -> dict[str, Any]:
    """Load values in a process that has the shop of that folder (None: has none); return what came of each."""
    if folder is not None:
        sys.path.insert(0, folder)
        shop = importlib.import_module("shop")
        if upgrades:
            shop.register(register_upgrade)
    found: dict[str, Any] = {}
    with WorkflowCheckpointAdapter.from_conn_string(url) as saver:
        for name in names:
            try:
                found[name] = repr(saver.get_tuple(at(name)).checkpoint["channel_values"]["value"])
            except RuntimePersistError as error:
                found[name] = (error.code, str(error), error.details.get("channel"), error.details.get("checkpoint_id"))
    return found


def loads_local(word: Word, url: str, bound: bool) -> Any:
    """Load a value of a class that was made inside a function, with the graph that has it in its schema or without."""
    local = importlib.import_module("tests.values.local")
    with Runtime.open(url) as runtime:
        target: Any = (
            runtime.bind(local.made(), name="local") if bound else local.made(checkpointer=runtime.checkpointer)
        )
        return repr(target.get_state(at("local")).values["thing"])
