"""Where a worker finds graphs: ``module:attribute`` naming a dict of name -> compiled graph or factory."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langgraph.pregel import Pregel

from runtime_persist.adapters.workflow.definition import version_of
from runtime_persist.errors import InvalidInput, UnknownGraph
from runtime_persist.model.retry import NO_RETRY, RetryPolicy
from runtime_persist.queries.claiming import ANY_VERSION
from runtime_persist.runtime.facade import checked_version

if TYPE_CHECKING:
    from runtime_persist.model.workspace import Workspace

Graph = Pregel[Any, Any, Any, Any]


@dataclass(frozen=True, slots=True)
class RegisteredGraph:
    """A graph as a worker serves it.

    Attributes:
        graph: a compiled graph, or a function that makes one.
        version: of its definition (None: made from the names of nodes, edges and state keys). A run belongs to the
            version it was started with; workers without that version leave it alone.
        compatible_with: older versions whose open runs this graph may finish, or ``["*"]``: all.
        retry: how often its runs are attempted, unless ``runs.start`` says so (None: once).
        max_concurrency: how many of its runs may be active at the same time, over all workers and callers
            (``math.inf``: any number; None: as it was registered before, at first any number).
        workspace: the directory its attempts work in (None: as it was registered before; at first none).
        runtime: name of what executes its attempts (``inprocess``, ``subprocess``, or one of your own; None: the
            worker's default).

    """

    graph: Graph | Callable[[], Graph]
    version: str | None = None
    compatible_with: Collection[str] = ()
    retry: RetryPolicy | None = None
    max_concurrency: float | None = None
    workspace: Workspace | None = None
    runtime: str | None = None


@dataclass(frozen=True, slots=True)
class Served:
    """A registered graph, made and named.

    Attributes:
        graph: the compiled graph.
        version: of its definition.
        versions: those whose runs it finishes, its own included; ``*`` stands for all.
        retry: how often its runs are attempted.
        max_concurrency: how many of its runs may be active at the same time (None: as registered before).
        workspace: the directory its attempts work in (None: as registered before).
        runtime: what executes its attempts (None: the worker's default).

    """

    graph: Graph
    version: str
    versions: frozenset[str]
    retry: RetryPolicy
    max_concurrency: float | None
    workspace: Workspace | None
    runtime: str | None

    @property
    def claims(self) -> tuple[str, ...] | None:
        """Return the versions as a claim takes them (None: all)."""
        return None if ANY_VERSION in self.versions else tuple(sorted(self.versions))


Servable = Graph | Callable[[], Graph] | RegisteredGraph


def serve(name: str, given: Servable) -> Served:
    """Return a graph ready to be served (raises InvalidInput)."""
    registered = given if isinstance(given, RegisteredGraph) else RegisteredGraph(given)
    graph = resolve(name, registered.graph)
    version = checked_version(registered.version) or version_of(graph)
    accepted = registered.compatible_with
    if isinstance(accepted, str) or not all(isinstance(one, str) for one in accepted):
        msg = f"graph {name!r}: compatible_with is a list of versions, not {accepted!r}"
        raise InvalidInput(msg, name=name)
    return Served(
        graph,
        version,
        frozenset({version, *accepted}),
        registered.retry or NO_RETRY,
        registered.max_concurrency,
        registered.workspace,
        registered.runtime,
    )


def load_registry(reference: str) -> dict[str, Graph | RegisteredGraph]:
    """Return what ``module:attribute`` names: compiled graphs, what factories made, registered graphs.

    Raises:
        InvalidInput: no such module or attribute, or it is not a mapping of names to graphs.

    """
    registry = load_attribute(reference)
    if not isinstance(registry, Mapping) or not registry:
        msg = f"{reference} must be a non-empty dict of name -> graph, not {type(registry).__name__}"
        raise InvalidInput(msg, registry=reference)
    return {
        name: given if isinstance(given, RegisteredGraph) else resolve(name, given) for name, given in registry.items()
    }


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


def look_up(graphs: Mapping[str, Served], name: str) -> Served:
    """Return the graph of a run (raises UnknownGraph)."""
    try:
        return graphs[name]
    except KeyError:
        msg = f"this worker has no graph {name!r} (it has: {', '.join(sorted(graphs))})"
        raise UnknownGraph(msg, graph=name) from None
