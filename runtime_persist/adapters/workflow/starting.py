"""Where in a thread a call begins: at its latest state, at an old checkpoint, or at one inside a subgraph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson
from langchain_core.runnables.config import merge_configs

from runtime_persist.adapters.workflow import reading
from runtime_persist.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Mapping

    from langchain_core.runnables import RunnableConfig
    from langgraph.pregel import Pregel

_MAP = "checkpoint_map"
_ADDRESS = frozenset({"checkpoint_id", "checkpoint_ns", _MAP})


def start_of(graph: Pregel[Any, Any, Any, Any], config: RunnableConfig) -> tuple[str, str | None]:
    """Return the thread a call is for, and its start: None is the latest state.

    A start is a checkpoint id of the root, or JSON that says the checkpoint of each namespace down to a subgraph's.

    Raises:
        InvalidThreadId: no usable thread id, in neither the config nor the graph's own.
        InvalidInput: a namespace without the checkpoints above it.

    """
    merged = merge_configs(graph.config, config)
    place = reading.place_of(merged)
    if not place.ns:
        return place.thread_id, place.checkpoint_id
    checkpoints: Mapping[str, str] = merged["configurable"].get(_MAP) or {}
    if "" not in checkpoints:
        msg = (
            f"a run is of a whole thread: checkpoint_ns={place.ns!r} cannot be invoked without the checkpoints above "
            "it (checkpoint_map); take the config from get_state(…, subgraphs=True) or from get_state_history"
        )
        raise InvalidInput(msg, checkpoint_ns=place.ns)
    if place.checkpoint_id is not None:
        checkpoints = {**checkpoints, place.ns: place.checkpoint_id}
    return place.thread_id, orjson.dumps(dict(checkpoints), option=orjson.OPT_SORT_KEYS).decode()


def root_of(start: str) -> str:
    """Return the root's checkpoint of a start."""
    return str(_checkpoints(start)[""])


def addressed(configurable: Mapping[str, Any], start: str | None) -> dict[str, Any]:
    """Return a config's values with a start instead of the address they have."""
    kept = {key: value for key, value in configurable.items() if key not in _ADDRESS}
    if start is None:
        return kept
    checkpoints = _checkpoints(start)
    if len(checkpoints) == 1:
        return {**kept, "checkpoint_id": checkpoints[""]}
    # As LangGraph's own configs of subgraph checkpoints: the namespace is the innermost one.
    innermost = max(checkpoints, key=len)
    return {**kept, _MAP: checkpoints, "checkpoint_ns": innermost, "checkpoint_id": checkpoints[innermost]}


def _checkpoints(start: str) -> dict[str, str]:
    if not start.startswith("{"):
        return {"": start}
    found: dict[str, str] = orjson.loads(start)
    return found
