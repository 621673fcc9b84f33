"""Where a worker finds graphs: ``module:attribute`` naming a dict of name -> compiled graph or factory."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from langgraph.pregel import Pregel

from runtime_persist.errors import InvalidInput, UnknownGraph

Graph = Pregel[Any, Any, Any, Any]
Registry = Mapping[str, Graph | Callable[[], Graph]]


def load_registry(reference: str) -> dict[str, Graph]:
    """Return the graphs that ``module:attribute`` names; factories are called.

    Raises:
        InvalidInput: no such module or attribute, or it is not a mapping of names to graphs.

    """
    registry = load_attribute(reference)
    if not isinstance(registry, Mapping) or not registry:
        msg = f"{reference} must be a non-empty dict of name -> graph, not {type(registry).__name__}"
        raise InvalidInput(msg, registry=reference)
    return {name: resolve(name, graph) for name, graph in registry.items()}


def load_attribute(reference: str) -> Any:
    """Return what ``module:attribute`` names; the module is imported, also from the current folder.

    Raises:
        InvalidInput: no such module or attribute.

    """
    module_name, found, attribute = reference.partition(":")
    if not found or not module_name or not attribute:
        msg = f"{reference!r} is not module:attribute (for example app.graphs:registry)"
        raise InvalidInput(msg, registry=reference)
    here = str(Path.cwd())
    if here not in sys.path:  # as `python -m` does; console scripts do not
        sys.path.insert(0, here)
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not module_name.startswith(error.name):
            raise  # a module that the application itself misses
        msg = f"there is no module {module_name!r} (looked in {here} and the installed packages)"
        raise InvalidInput(msg, registry=reference) from error
    try:
        return getattr(module, attribute)
    except AttributeError as error:
        msg = f"module {module_name!r} has no attribute {attribute!r}"
        raise InvalidInput(msg, registry=reference) from error


def resolve(name: str, graph: object) -> Graph:
    """Return a registered graph, calling it when it is a factory."""
    made = graph if isinstance(graph, Pregel) else graph() if callable(graph) else graph
    if not isinstance(made, Pregel):
        msg = f"graph {name!r} is a {type(made).__name__}, not a compiled graph; call .compile() first"
        raise InvalidInput(msg, name=name)
    return made


def look_up(graphs: Mapping[str, Graph], name: str) -> Graph:
    """Return the graph of a run (raises UnknownGraph)."""
    try:
        return graphs[name]
    except KeyError:
        msg = f"this worker has no graph {name!r} (it has: {', '.join(sorted(graphs))})"
        raise UnknownGraph(msg, graph=name) from None
