"""The side of a bound graph that runs nothing: its state, a person's edits, and what the graph is like."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, cast

from langchain_core.runnables import Runnable
from langchain_core.runnables.config import merge_configs

from runtime_persist.adapters.workflow.execution import bound_copy

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
    from typing import Self

    from langchain_core.runnables import RunnableConfig
    from langchain_core.runnables.graph import Graph
    from langgraph.channels.base import BaseChannel
    from langgraph.pregel import Pregel
    from langgraph.pregel.protocol import PregelProtocol
    from langgraph.types import StateSnapshot, StateUpdate
    from pydantic import BaseModel

    from runtime_persist.adapters.workflow.saver import WorkflowCheckpointAdapter


class GraphState(Runnable[Any, Any]):
    """State, history and description of a graph, under the optimistic saver.

    Reading never waits for a run. Edits (``update_state``, ``bulk_update_state``) are a person's: they are refused
    while a live run owns the thread (``ThreadOwned``), and allowed while it waits.
    """

    def __init__(self, graph: Pregel[Any, Any, Any, Any], saver: WorkflowCheckpointAdapter) -> None:
        """Read ``graph`` through ``saver``."""
        self._graph = graph
        self._saver = saver
        self._plain = bound_copy(graph, saver)
        self.name = graph.name

    # --- what it is made of -------------------------------------------------------------------------------------

    @property
    def graph(self) -> Pregel[Any, Any, Any, Any]:
        """Return the compiled graph that was bound, untouched: called itself, it is no run."""
        return self._graph

    @property
    def checkpointer(self) -> WorkflowCheckpointAdapter:
        """Return the optimistic saver that reads and edits go through (runs have a session of their own)."""
        return self._saver

    @property
    def config(self) -> RunnableConfig | None:
        """Return the default config (:meth:`with_config`)."""
        return self._graph.config

    @property
    def nodes(self) -> Mapping[str, Any]:
        """Return the graph's nodes by name."""
        return self._graph.nodes

    @property
    def channels(self) -> Mapping[str, BaseChannel[Any, Any, Any] | Any]:
        """Return the graph's channels by name."""
        return self._graph.channels

    @property
    def stream_mode(self) -> Any:
        """Return the default stream mode."""
        return self._graph.stream_mode

    @property
    def store(self) -> Any:
        """Return the graph's store of long-term memory, if it has one; what it writes is in no run's transaction."""
        return self._graph.store

    def with_config(self, config: RunnableConfig | None = None, **kwargs: Any) -> Self:
        """Return this bound graph with more defaults in its config; a ``thread_id`` may be among them."""
        clone = copy.copy(self)
        clone._graph = copy.copy(self._graph)  # noqa: SLF001 (a clone of itself)
        clone._graph.config = merge_configs(self._graph.config, config, cast("RunnableConfig", kwargs))  # noqa: SLF001
        clone._plain = bound_copy(clone._graph, self._saver)  # noqa: SLF001
        return clone

    # --- state ----------------------------------------------------------------------------------------------------

    def get_state(self, config: RunnableConfig, *, subgraphs: bool = False) -> StateSnapshot:
        """Return the state of a thread: the latest, or that of the checkpoint the config names."""
        return self._plain.get_state(config, subgraphs=subgraphs)

    async def aget_state(self, config: RunnableConfig, *, subgraphs: bool = False) -> StateSnapshot:
        """Do :meth:`get_state` from an event loop."""
        return await self._plain.aget_state(config, subgraphs=subgraphs)

    def get_state_history(
        self,
        config: RunnableConfig,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 (LangGraph's name)
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[StateSnapshot]:
        """Yield the states of a thread, newest first; the arguments are those of the saver's ``list``."""
        return self._plain.get_state_history(config, filter=filter, before=before, limit=limit)

    def aget_state_history(
        self,
        config: RunnableConfig,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 (LangGraph's name)
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[StateSnapshot]:
        """Do :meth:`get_state_history` from an event loop."""
        return self._plain.aget_state_history(config, filter=filter, before=before, limit=limit)

    def update_state(
        self,
        config: RunnableConfig,
        values: dict[str, Any] | Any | None,
        as_node: str | None = None,
        task_id: str | None = None,
    ) -> RunnableConfig:
        """Store an edit of the state as if ``as_node`` had made it, and return the config of the new checkpoint.

        Raises:
            ThreadOwned: a live run owns the thread.
            StaleWriter: the thread moved on meanwhile; repeat the call.

        """
        return self._plain.update_state(config, values, as_node, task_id)

    async def aupdate_state(
        self,
        config: RunnableConfig,
        values: dict[str, Any] | Any | None,
        as_node: str | None = None,
        task_id: str | None = None,
    ) -> RunnableConfig:
        """Do :meth:`update_state` from an event loop."""
        return await self._plain.aupdate_state(config, values, as_node, task_id)

    def bulk_update_state(
        self,
        config: RunnableConfig,
        supersteps: Sequence[Sequence[StateUpdate]],
    ) -> RunnableConfig:
        """Store several edits, each superstep in a transaction of its own. Raises as :meth:`update_state`."""
        return self._plain.bulk_update_state(config, supersteps)

    async def abulk_update_state(
        self,
        config: RunnableConfig,
        supersteps: Sequence[Sequence[StateUpdate]],
    ) -> RunnableConfig:
        """Do :meth:`bulk_update_state` from an event loop."""
        return await self._plain.abulk_update_state(config, supersteps)

    # --- description ----------------------------------------------------------------------------------------------

    def get_graph(self, config: RunnableConfig | None = None, *, xray: int | bool = False) -> Graph:
        """Return the graph for drawing it."""
        return self._plain.get_graph(config, xray=xray)

    async def aget_graph(self, config: RunnableConfig | None = None, *, xray: int | bool = False) -> Graph:
        """Do :meth:`get_graph` from an event loop."""
        return await self._plain.aget_graph(config, xray=xray)

    def get_subgraphs(
        self,
        *,
        namespace: str | None = None,
        recurse: bool = False,
    ) -> Iterator[tuple[str, PregelProtocol[Any, Any, Any, Any]]]:
        """Yield the subgraphs with their names."""
        return self._plain.get_subgraphs(namespace=namespace, recurse=recurse)

    def aget_subgraphs(
        self,
        *,
        namespace: str | None = None,
        recurse: bool = False,
    ) -> AsyncIterator[tuple[str, PregelProtocol[Any, Any, Any, Any]]]:
        """Do :meth:`get_subgraphs` from an event loop."""
        return self._plain.aget_subgraphs(namespace=namespace, recurse=recurse)

    @property
    def InputType(self) -> Any:  # noqa: N802 (LangChain's name)
        """Return the type of the graph's input."""
        return self._graph.InputType

    @property
    def OutputType(self) -> Any:  # noqa: N802 (LangChain's name)
        """Return the type of the graph's output."""
        return self._graph.OutputType

    def get_input_schema(self, config: RunnableConfig | None = None) -> type[BaseModel]:
        """Return the graph's input as a pydantic model."""
        return self._graph.get_input_schema(config)

    def get_output_schema(self, config: RunnableConfig | None = None) -> type[BaseModel]:
        """Return the graph's output as a pydantic model."""
        return self._graph.get_output_schema(config)

    def get_input_jsonschema(self, config: RunnableConfig | None = None) -> dict[str, Any]:
        """Return the graph's input as a JSON schema."""
        return self._graph.get_input_jsonschema(config)

    def get_output_jsonschema(self, config: RunnableConfig | None = None) -> dict[str, Any]:
        """Return the graph's output as a JSON schema."""
        return self._graph.get_output_jsonschema(config)

    def get_context_jsonschema(self) -> dict[str, Any] | None:
        """Return the graph's context as a JSON schema, None when it has none."""
        return self._graph.get_context_jsonschema()
