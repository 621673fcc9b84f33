"""Runtime: one opened database and everything that is done with it."""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from langgraph.pregel import Pregel

from runtime_persist.adapters.workflow import BoundGraph, WorkflowCheckpointAdapter
from runtime_persist.adapters.workflow.core import SaverCore
from runtime_persist.adapters.workflow.definition import version_of
from runtime_persist.adapters.workflow.reading import in_thread
from runtime_persist.adapters.workflow.values import metadata_names, serializer_for
from runtime_persist.commands.register_graph import RegisterGraph
from runtime_persist.engine import Engine, Flow, arun, ownership, run
from runtime_persist.engine.lease import Lease
from runtime_persist.engine.worktrees import check_workspace
from runtime_persist.errors import InvalidInput
from runtime_persist.model import limits
from runtime_persist.model.ids import is_name, is_short_name, new_id, thread_id_of
from runtime_persist.queries import graphs as graph_queries
from runtime_persist.queries.claiming import ANY_VERSION
from runtime_persist.runtime.attempts import Attempts
from runtime_persist.runtime.events import Consumer
from runtime_persist.runtime.runs import Runs

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path
    from types import TracebackType

    from langgraph.checkpoint.serde.base import SerializerProtocol

    from runtime_persist.engine.revokers import Revoker
    from runtime_persist.model.budgets import Budget
    from runtime_persist.model.retry import RetryPolicy
    from runtime_persist.model.workspace import Workspace


class Runtime:
    """An opened database. Make one with :meth:`open`; use it with ``with`` or ``async with``."""

    def __init__(
        self,
        engine: Engine,
        serde: SerializerProtocol | None,
        metadata_keys: frozenset[str] | None = None,
    ) -> None:
        """Use :meth:`open`."""
        self._engine = engine
        core = SaverCore(engine, owns_engine=False, optimistic=True, metadata_keys=metadata_keys)
        self._saver = WorkflowCheckpointAdapter(core, serde=serde)
        self._versions: dict[str, str] = {}

    @classmethod
    def open(
        cls,
        url: str | Path,
        *,
        space: str = "default",
        schema: str | None = None,
        serde: SerializerProtocol | None = None,
        auto_setup: bool = True,
        lease_ttl: float = limits.LEASE_TTL_SECONDS,
        strict: str = "imported",
        metadata_keys: Collection[str] | None = None,
        max_value_bytes: int = limits.VALUE_BYTES_MAX,
    ) -> Self:
        """Open a database.

        Args:
            url: ``sqlite:///path``, ``sqlite:///:memory:``, a file path, ``postgresql://…`` or ``postgres://…``.
            space: tenant; every row belongs to one.
            schema: PostgreSQL schema of the tables (None: the connection's default).
            serde: serializer of values, used as given (default: the strict ValueSerializer).
            auto_setup: create or upgrade the tables.
            lease_ttl: seconds a lease lasts; it is renewed at a third of that.
            strict: which classes loading may make: ``imported`` (data classes of modules that are imported, and
                registered ones) or ``registered`` (those only); not with ``serde``.
            metadata_keys: store only these of a config's values as metadata (default: all but names of secrets).
            max_value_bytes: larger serialized values are refused (ValueTooLarge).

        Raises:
            InvalidUrl, InvalidInput: an argument cannot be used.
            SchemaMissing, SchemaTooNew, DatabaseUnavailable, MissingDependency: from the database.

        """
        serde, names = serializer_for(serde, strict), metadata_names(metadata_keys)
        engine = Engine(
            url,
            space=space,
            schema=schema,
            auto_setup=auto_setup,
            lease_ttl=lease_ttl,
            max_value_bytes=max_value_bytes,
        )
        return cls(engine, serde, names)

    @property
    def checkpointer(self) -> WorkflowCheckpointAdapter:
        """Return the optimistic saver (L0) on the same database."""
        return self._saver

    @property
    def engine(self) -> Engine:
        """Return the engine below (workers and tools of the package use it)."""
        return self._engine

    @cached_property
    def runs(self) -> Runs:
        """Return the runs of this space: start, look, wait, cancel, answer."""
        return Runs(self._saver, self._versions)

    @cached_property
    def attempts(self) -> Attempts:
        """Return the attempts of this space, for runtimes that report about them by a token."""
        return Attempts(self._engine, self._saver.serde)

    def bind(
        self,
        graph: Pregel[Any, Any, Any, Any],
        *,
        name: str,
        version: str | None = None,
        retry: RetryPolicy | None = None,
        max_concurrency: float | None = None,
        budget: Budget | None = None,
    ) -> BoundGraph:
        """Return the graph with every call as a run (L1); the graph itself is untouched.

        Args:
            graph: a compiled LangGraph graph, ``@entrypoint`` or ``create_agent`` result.
            name: name of the graph, stable over deployments: workers find it by this name.
            version: of its definition; runs are finished by workers that have this version or accept it (None: made
                from the names of nodes, edges and state keys).
            retry: how often runs that workers execute are attempted, unless ``runs.start`` says so (None: as it was
                registered before; at first: once).
            max_concurrency: how many of its runs may be active at the same time, over all workers and callers; a call
                of the bound graph that would be one more raises CapacityReached (``math.inf``: any number; None: as it
                was registered before; at first any number).

            budget: what the calls of each run may take that a call of the bound graph starts (None: any amount).
                ``configurable.budget`` of a call's config is the budget of its run instead.

        Raises:
            InvalidInput: not a compiled graph, or an empty name.

        """
        check_graph(graph, name)
        version = checked_version(version) or version_of(graph)
        if self._versions.get(name) != version or retry is not None or max_concurrency is not None:
            run(self.register(name, version, retry, max_concurrency))
        return BoundGraph(graph, self._saver, name, version, budget)

    def register(
        self,
        name: str,
        version: str | None = None,
        retry: RetryPolicy | None = None,
        max_concurrency: float | None = None,
        workspace: Workspace | None = None,
    ) -> Flow[None]:
        """Note that this space has a graph of that name, so that ``runs.start`` accepts it.

        Args:
            name: of the graph.
            version: of its definition: runs that are started from now on belong to it (None: as registered before).
            retry: how often its runs are attempted (None: as registered before).
            max_concurrency: how many of its runs may be active at the same time, over all workers and callers
                (``math.inf``: any number; None: as registered before).
            workspace: the directory that its attempts work in (None: as registered before).

        Raises:
            InvalidInput: a limit that is none, a workspace that is not there.
            UnsafeWorkspace: its runs would share one directory at the same time.

        """
        engine = self._engine
        known = yield engine.coordinator.read("read_graphs", lambda: graph_queries.registered(engine.space))
        if workspace is not None:
            yield from in_thread(lambda: check_workspace(workspace))
        said: dict[str, Any] = {
            "version": version,
            "retry_policy": None if retry is None else retry.encoded(),
            "max_concurrency": checked_limit(max_concurrency),
            "workspace": None if workspace is None else workspace.encoded(),
        }
        row = known.get(name)
        if row is None or any(value not in {None, row[column] or 0} for column, value in said.items()):
            yield engine.coordinator.commit(RegisterGraph(space=engine.space, command_id=new_id(), graph=name, **said))
        if version is not None:
            self._versions[name] = version

    def register_revoker(self, kind: str, revoker: Revoker) -> None:
        """Have ``revoker`` prove, in this process, that execution domains of a kind can no longer write.

        Whoever takes a run over asks it (workers, ``cancel`` and owned calls). ``process`` and ``workspace`` are built
        in; registering them again replaces them.

        Args:
            kind: of the domains.
            revoker: has ``revoke(domain)``, which returns Revoked or Unproved.

        Raises:
            InvalidInput: an empty kind, or no such method.

        """
        if not is_name(kind) or not callable(getattr(revoker, "revoke", None)):
            msg = f"a revoker needs a kind (a non-empty text) and a method revoke(domain), got {kind!r}, {revoker!r}"
            raise InvalidInput(msg)
        self._engine.revokers.register(kind, revoker)

    def events(self, *, consumer: str, wait: bool = True) -> Consumer:
        """Return a consumer of the space's events: iterate over it, sync or async.

        Each committed event is delivered at least once to each consumer's name, those of one run in their order. What
        was yielded is acknowledged a page at a time (:class:`runtime_persist.runtime.events.Consumer`), so whoever
        dies gets at most a page again.

        Args:
            consumer: a name of its own; how far it has come is stored under it. A new one begins at the first event.
            wait: go on as events come; without it end at the last one there is.

        Raises:
            InvalidInput: the name is empty.
            ConsumerMoved: (while iterating) another process consumes under this name.

        """
        return Consumer(self._engine, consumer, wait=wait)

    def lease(self, *, thread_id: str) -> Lease:
        """Start, claim and activate a run without a graph, and return its lease; ``with`` releases it.

        Raises:
            ThreadOwned: another run has the thread.
            InvalidThreadId: the thread id cannot be used.

        """
        return Lease(self._engine, run(ownership.take(self._engine, thread_id_of(thread_id))))

    async def alease(self, *, thread_id: str) -> Lease:
        """Do :meth:`lease` from an event loop; use the result with ``async with``."""
        return Lease(self._engine, await arun(ownership.take(self._engine, thread_id_of(thread_id))))

    def close(self) -> None:
        """Finish what is queued and close the database. Leases that are still held run out by themselves."""
        self._engine.close()

    async def aclose(self) -> None:
        """Do :meth:`close` without blocking the event loop."""
        await arun(in_thread(self._engine.close))

    def __enter__(self) -> Self:
        """Return the runtime."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the database."""
        self.close()

    async def __aenter__(self) -> Self:
        """Return the runtime."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the database."""
        await self.aclose()


def checked_version(version: object) -> str | None:
    """Return a version that somebody gave (None: none; raises InvalidInput)."""
    if version is None or (is_name(version) and version != ANY_VERSION):
        return None if version is None else str(version)
    msg = f"a version is a non-empty text other than {ANY_VERSION!r}, not {version!r}"
    raise InvalidInput(msg)


def checked_limit(limit: object) -> int | None:
    """Return a limit of concurrency as it is registered: 0 is none (raises InvalidInput)."""
    if limit is None or limit == math.inf:
        return None if limit is None else 0
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        msg = f"max_concurrency is a whole number from 1 on, or math.inf, not {limit!r}"
        raise InvalidInput(msg)
    return limit


def check_graph(graph: object, name: object) -> None:
    """Raise InvalidInput unless this is a compiled graph with a usable name."""
    if not is_short_name(name):
        msg = f"a graph needs a non-empty text of at most {limits.NAME_BYTES_MAX} bytes as name, not {name!r:.100}"
        raise InvalidInput(msg)
    if not isinstance(graph, Pregel):
        msg = f"graph {name!r} is a {type(graph).__name__}, not a compiled graph; call .compile() first"
        raise InvalidInput(msg, name=name)
