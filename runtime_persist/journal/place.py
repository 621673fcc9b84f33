"""Where an operation is called: inside which run, task and try, and the n-th of its name."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from langchain_core.runnables.config import var_child_runnable_config

from runtime_persist.engine import OwnedRun
from runtime_persist.errors import OperationNeedsRun, OperationUnsupported

if TYPE_CHECKING:
    from collections.abc import Mapping

_TASKS_REMEMBERED = 1_024


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

    def ordinal(self, name: str) -> str:
        """Return the position of this call among the task's calls of that name: ``#0``, ``#1`` …."""
        with _lock:
            tasks = self.owned.scratch
            key = (self.checkpoint_ns, id(self.scratch), self.node_attempt)
            # The scratchpad itself is kept beside its counter: its id must not be reused while it counts.
            _, counter = tasks.setdefault(key, (self.scratch, Counter()))
            tasks.move_to_end(key)
            while len(tasks) > _TASKS_REMEMBERED:
                tasks.popitem(last=False)
            found: int = counter[name]
            counter[name] += 1
        return f"#{found}"


_lock = threading.Lock()


def current_place(name: str) -> Place | None:
    """Return where the caller is, None outside of any graph.

    Raises:
        OperationNeedsRun: inside a graph that is not bound to a run.
        OperationUnsupported: the graph runs with durability="exit": nothing is durable before its end.

    """
    config = var_child_runnable_config.get()
    configurable: Mapping[str, Any] = (config or {}).get("configurable") or {}
    if "__pregel_task_id" not in configurable and "__pregel_read" not in configurable:
        return None
    owned = getattr(configurable.get("__pregel_checkpointer"), "owned_run", None)
    if not isinstance(owned, OwnedRun):
        msg = (
            f"operation {name!r} was called inside a graph that is not bound to a run, so it cannot be journalled; "
            "call the graph through runtime.bind(graph)"
        )
        raise OperationNeedsRun(msg, name=name)
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


def _namespace(owned: OwnedRun, configurable: Mapping[str, Any]) -> str:
    ns: str = configurable["checkpoint_ns"]
    branch = owned.branch
    root = (configurable.get("checkpoint_map") or {}).get("")
    return f"{ns}@{branch.name}" if branch is not None and branch.checkpoint_id == root else ns
