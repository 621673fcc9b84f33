"""Where in a thread a call begins: at its latest state, at an old checkpoint, or at one inside a subgraph."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import orjson
from langchain_core.runnables.config import merge_configs
from langgraph.types import Command

from runtime_persist.adapters.workflow import reading
from runtime_persist.adapters.workflow.encoding import NULL_TASK, RESUME
from runtime_persist.engine.owned import Branch
from runtime_persist.engine.payloads import dumped
from runtime_persist.errors import InvalidInput
from runtime_persist.model.keys import fingerprint

if TYPE_CHECKING:
    from collections.abc import Mapping

    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import CheckpointTuple
    from langgraph.pregel import Pregel

    from runtime_persist.adapters.workflow.core import SaverContext
    from runtime_persist.engine import Flow

_MAP = "checkpoint_map"
_ADDRESS = frozenset({"checkpoint_id", "checkpoint_ns", _MAP})
_BRANCH_CHARS = 16


@dataclass(frozen=True, slots=True)
class Start:
    """A checkpoint to begin at.

    Attributes:
        checkpoints: the root's checkpoint (under ``""``), and those of the namespaces down to a subgraph's.
        branch: name of the branch it makes, when its tasks have the ids of tasks of a branch that was left.

    """

    checkpoints: Mapping[str, str]
    branch: str | None = None

    @property
    def root(self) -> str:
        """Return the root's checkpoint."""
        return self.checkpoints[""]

    def owned_branch(self) -> Branch | None:
        """Return the branch as the journal takes it."""
        return None if self.branch is None else Branch(self.root, self.branch)

    def encoded(self) -> str:
        """Return it as a run stores it: the checkpoint id when that is all, else JSON."""
        if len(self.checkpoints) == 1 and self.branch is None:
            return self.root
        said = {"at": dict(self.checkpoints), "branch": self.branch}
        return orjson.dumps(said, option=orjson.OPT_SORT_KEYS).decode()

    @classmethod
    def decoded(cls, text: str | None) -> Self | None:
        """Return what :meth:`encoded` gave (None: none)."""
        if text is None:
            return None
        if not text.startswith("{"):
            return cls({"": text})
        said = orjson.loads(text)
        return cls(said["at"], said["branch"])


def start_of(graph: Pregel[Any, Any, Any, Any], config: RunnableConfig) -> tuple[str, Start | None]:
    """Return the thread a call is for, and where it begins (None: at the latest state).

    Raises:
        InvalidThreadId: no usable thread id, in neither the config nor the graph's own.
        InvalidInput: a namespace without the checkpoints above it.

    """
    merged = merge_configs(graph.config, config)
    place = reading.place_of(merged)
    if not place.ns:
        return place.thread_id, None if place.checkpoint_id is None else Start({"": place.checkpoint_id})
    checkpoints: Mapping[str, str] = merged["configurable"].get(_MAP) or {}
    if "" not in checkpoints:
        msg = (
            f"a run is of a whole thread: checkpoint_ns={place.ns!r} cannot be invoked without the checkpoints above "
            "it (checkpoint_map); take the config from get_state(…, subgraphs=True) or from get_state_history"
        )
        raise InvalidInput(msg, checkpoint_ns=place.ns)
    if place.checkpoint_id is not None:
        checkpoints = {**checkpoints, place.ns: place.checkpoint_id}
    return place.thread_id, Start(checkpoints)


def addressed(configurable: Mapping[str, Any], start: Start | None) -> dict[str, Any]:
    """Return a config's values with a start instead of the address they have."""
    kept = {key: value for key, value in configurable.items() if key not in _ADDRESS}
    if start is None:
        return kept
    if len(start.checkpoints) == 1:
        return {**kept, "checkpoint_id": start.root}
    # As LangGraph's own configs of subgraph checkpoints: the namespace is the innermost one.
    innermost = max(start.checkpoints, key=len)
    return {
        **kept,
        _MAP: dict(start.checkpoints),
        "checkpoint_ns": innermost,
        "checkpoint_id": start.checkpoints[innermost],
    }


def answering(saver: SaverContext, thread_id: str, given: Any, start: Start) -> Flow[Start | None]:
    """Return where an answer to a pause begins; what is no answer begins where it was told to.

    An answer to the pause that the thread stands at has no start: it continues the open run (an address inside a
    subgraph is a place to go back to, also then). LangGraph runs the answer
    to a pause that the thread has left under the same task ids as the first answer. Another answer is therefore a
    branch, named after the answer; the first one again is the same request delivered twice, and no branch.
    """
    if not isinstance(given, Command) or given.resume is None:
        return start
    head = yield from reading.get_tuple(saver, _place(thread_id, None))
    if head is not None and head.checkpoint["id"] == start.root:
        return None if len(start.checkpoints) == 1 else start
    paused = yield from reading.get_tuple(saver, _place(thread_id, start.root))
    if paused is None or _answered(paused, given.resume):
        return start
    kind, data = dumped(saver.serde, given, "the answer", saver.core.engine.max_value_bytes)
    return replace(start, branch=fingerprint(kind.encode(), data).hex()[:_BRANCH_CHARS])


def _answered(paused: CheckpointTuple, resume: Any) -> bool:
    """Return whether the tasks of a checkpoint have taken up this answer (or each one of a map of answers)."""
    writes = paused.pending_writes or []
    taken = [
        one for task, channel, value in writes if channel == RESUME and task != NULL_TASK for one in _listed(value)
    ]
    return resume in taken or (
        isinstance(resume, dict) and bool(resume) and all(one in taken for one in resume.values())
    )


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _place(thread_id: str, checkpoint_id: str | None) -> RunnableConfig:
    return {"configurable": {"thread_id": thread_id, "checkpoint_id": checkpoint_id}}
