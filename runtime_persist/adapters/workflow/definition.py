"""Which definition of a graph this is: runs belong to the one they were started with."""

from __future__ import annotations

from typing import Any

import orjson
from langgraph.graph.state import CompiledStateGraph
from langgraph.pregel import Pregel

from runtime_persist.model.keys import fingerprint

_CHARS = 16


def version_of(graph: Pregel[Any, Any, Any, Any]) -> str:
    """Return the version of a graph's definition: what another process must have alike to go on with its runs.

    It covers the names of nodes, edges, branches and state keys, subgraphs included; not the code of the nodes, which a
    deployment may repair under the runs that are open.
    """
    return fingerprint(orjson.dumps(_said(graph), option=orjson.OPT_SORT_KEYS)).hex()[:_CHARS]


def _said(graph: Pregel[Any, Any, Any, Any]) -> dict[str, Any]:
    said: dict[str, Any] = {
        "nodes": {name: sorted(node.triggers) for name, node in graph.nodes.items()},
        "channels": {name: type(channel).__name__ for name, channel in graph.channels.items()},
        "inside": {name: _said(inner) for name, inner in graph.get_subgraphs() if isinstance(inner, Pregel)},
    }
    if isinstance(graph, CompiledStateGraph):
        said["edges"] = sorted(graph.builder.edges)
        said["joins"] = sorted((sorted(before), after) for before, after in graph.builder.waiting_edges)
        said["branches"] = {name: sorted(found) for name, found in graph.builder.branches.items() if found}
    return said
