"""Where an operation is called: inside which run, task and try."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from langchain_core.runnables.config import var_child_runnable_config

from runtime_persist.engine import OwnedRun
from runtime_persist.errors import OperationNeedsRun, OperationUnsupported

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Place:
    """The task an operation is called in.

    Attributes:
        owned: the run.
        checkpoint_ns: namespace including the task id; right also inside node error handlers. In the tasks of the old
            checkpoint that a run began at, the run's branch follows: they have the same ids as in the branch that the
            thread has left, whose operations are not theirs.
        checkpoint_id: the checkpoint the task runs on: the operation waits until it is durable.
        node_attempt: LangGraph's number of the node's try (RetryPolicy).
        scratch: identity of this execution of the task: ordinals begin anew with each.

    """

    owned: OwnedRun
    checkpoint_ns: str
    checkpoint_id: str
    node_attempt: int
    scratch: Any


def current_run(what: str) -> OwnedRun | None:
    """Return the run whose node is calling, None outside of any graph.

    Raises:
        OperationNeedsRun: inside a graph that is not bound to a run.

    """
    configurable = _configurable()
    if "__pregel_task_id" not in configurable and "__pregel_read" not in configurable:
        return None
    owned = getattr(configurable.get("__pregel_checkpointer"), "owned_run", None)
    if not isinstance(owned, OwnedRun):
        msg = (
            f"{what} was called inside a graph that is not bound to a run, so it cannot be journalled; "
            "call the graph through runtime.bind(graph)"
        )
        raise OperationNeedsRun(msg)
    return owned


def current_place(name: str) -> Place | None:
    """Return where the caller is, None outside of any graph.

    Raises:
        OperationNeedsRun: inside a graph that is not bound to a run.
        OperationUnsupported: the graph runs with durability="exit": nothing is durable before its end.

    """
    owned = current_run(f"operation {name!r}")
    if owned is None:
        return None
    configurable = _configurable()
    if configurable.get("__pregel_durability") == "exit":
        msg = (
            f"operation {name!r} cannot be journalled with durability='exit': no checkpoint is stored before the "
            "graph ends, so its identity would change after a crash; use 'sync' or 'async'"
        )
        raise OperationUnsupported(msg, name=name)
    info = getattr(configurable.get("__pregel_runtime"), "execution_info", None)
    if info is None or not configurable.get("checkpoint_ns"):
        msg = f"operation {name!r} was called where LangGraph gives no execution info"
        raise OperationUnsupported(msg, name=name)
    return Place(
        owned,
        _namespace(owned, configurable),
        info.checkpoint_id,
        info.node_attempt,
        configurable.get("__pregel_scratchpad"),
    )


def _configurable() -> Mapping[str, Any]:
    return (var_child_runnable_config.get() or {}).get("configurable") or {}


def _namespace(owned: OwnedRun, configurable: Mapping[str, Any]) -> str:
    ns: str = configurable["checkpoint_ns"]
    branch = owned.branch
    root = (configurable.get("checkpoint_map") or {}).get("")
    return f"{ns}@{branch.name}" if branch is not None and branch.checkpoint_id == root else ns
