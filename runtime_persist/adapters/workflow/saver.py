"""WorkflowCheckpointAdapter: LangGraph's checkpoint saver, sync and async from one object.

The method contract is LangGraph's; the write path is the coordinator's. Unbound (L0) the saver is optimistic: it
refuses a put whose thread was moved on since the invocation loaded it. Bound to a lease (L1, :meth:`session`) every
write is fenced by the lease's epoch.
"""

from __future__ import annotations

import asyncio
import copy
import random
from typing import TYPE_CHECKING, Any, Self

from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
)

from runtime_persist.adapters.workflow import delta, reading, writing
from runtime_persist.adapters.workflow.core import SaverContext, SaverCore
from runtime_persist.adapters.workflow.saver_upkeep import SaverUpkeep
from runtime_persist.adapters.workflow.values import allowing, for_graph, metadata_names, serializer_for
from runtime_persist.engine import Engine, OwnedRun, arun, run
from runtime_persist.errors import InvalidInput
from runtime_persist.model import limits

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
    from pathlib import Path
    from types import TracebackType

    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import DeltaChannelHistory
    from langgraph.checkpoint.serde.base import SerializerProtocol
    from langgraph.pregel import Pregel

    from runtime_persist.engine.lease import Lease

_CONCURRENCY = ("optimistic", "unsafe")


class WorkflowCheckpointAdapter(SaverUpkeep, BaseCheckpointSaver[str]):
    """A LangGraph checkpoint saver on SQLite or PostgreSQL.

    Make one with :meth:`from_conn_string`, or take ``Runtime.checkpointer``. One object serves sync and async
    graphs, from any thread and event loop.
    """

    def __init__(self, core: SaverCore, *, serde: SerializerProtocol | None = None) -> None:
        """Use :meth:`from_conn_string`; this is for the package itself."""
        super().__init__(serde=serializer_for(serde))
        self._core = core
        self._owned: OwnedRun | None = None

    @classmethod
    def from_conn_string(
        cls,
        url: str | Path,
        *,
        space: str = "default",
        schema: str | None = None,
        serde: SerializerProtocol | None = None,
        auto_setup: bool = True,
        concurrency: str = "optimistic",
        strict: str = "imported",
        metadata_keys: Collection[str] | None = None,
        max_value_bytes: int = limits.VALUE_BYTES_MAX,
    ) -> Self:
        """Open a saver, ready to use; close it with ``close()``/``aclose()``, ``with`` or ``async with``.

        Args:
            url: ``sqlite:///path``, ``sqlite:///:memory:``, a file path, ``postgresql://…`` or ``postgres://…``.
            space: tenant; every row belongs to one.
            schema: PostgreSQL schema of the tables (None: the connection's default).
            serde: serializer of values, used as given (default: the strict ValueSerializer).
            auto_setup: create or upgrade the tables when the saver is opened.
            concurrency: ``optimistic`` refuses stale writers; ``unsafe`` does not (for comparison only).
            strict: which classes loading may make: ``imported`` (data classes of modules that are imported, and
                registered ones) or ``registered`` (those only); not with ``serde``.
            metadata_keys: store only these of a config's values as metadata (default: all but names of secrets).
            max_value_bytes: larger serialized values are refused (ValueTooLarge).

        Raises:
            InvalidUrl, InvalidInput: an argument cannot be used.
            SchemaMissing, SchemaTooNew, DatabaseUnavailable, MissingDependency: from the database.

        """
        if concurrency not in _CONCURRENCY:
            msg = f"concurrency must be one of {', '.join(_CONCURRENCY)}, not {concurrency!r}"
            raise InvalidInput(msg, concurrency=repr(concurrency))
        serde, names = serializer_for(serde, strict), metadata_names(metadata_keys)
        engine = Engine(url, space=space, schema=schema, auto_setup=auto_setup, max_value_bytes=max_value_bytes)
        optimistic = concurrency == "optimistic"
        core = SaverCore(engine, owns_engine=True, optimistic=optimistic, metadata_keys=names)
        return cls(core, serde=serde)

    # --- ownership ------------------------------------------------------------------------------------------------

    @property
    def owned_run(self) -> OwnedRun | None:
        """Return the run whose lease this clone writes under, None at L0."""
        return self._owned

    @property
    def context(self) -> SaverContext:
        """Return what the package's own reading and writing need of this saver."""
        return SaverContext(self._core, self.serde, self._owned)

    @property
    def engine(self) -> Engine:
        """Return the engine below (the package's own tools use it)."""
        return self._core.engine

    def session(self, lease: Lease | OwnedRun) -> Self:
        """Return a clone that writes under a lease: the fencing token is the saver instance.

        Install it with ``g = copy.copy(graph); g.checkpointer = session``. Used as a context manager it raises at
        the end what went wrong first (LangGraph swallows saver errors in some situations).
        """
        session = copy.copy(self)
        session._owned = lease if isinstance(lease, OwnedRun) else lease.owned  # noqa: SLF001 (a clone of itself)
        return session

    def with_allowlist(self, extra_allowlist: Collection[tuple[str, ...] | type]) -> Self:
        """Return a clone whose serializer also makes these classes (itself if the serializer knows no such list)."""
        serde = allowing(self.serde, extra_allowlist)
        if serde is self.serde:
            return self
        clone = copy.copy(self)
        clone.serde = serde
        return clone

    def for_graph(self, graph: Pregel[Any, Any, Any, Any]) -> Self:
        """Return a clone whose serializer knows the classes a graph's schemas name."""
        clone = copy.copy(self)
        clone.serde = for_graph(self.serde, graph)
        return clone

    def check(self) -> None:
        """Raise the first refused or failed write of this session, if there was one."""
        if self._owned is not None:
            self._owned.check()

    # --- life -----------------------------------------------------------------------------------------------------

    def setup(self) -> None:
        """Create or upgrade the tables. Doing it again changes nothing."""
        self._core.engine.setup()

    async def asetup(self) -> None:
        """Do :meth:`setup` without blocking the event loop."""
        await arun(reading.in_thread(self._core.engine.setup))

    def close(self) -> None:
        """Finish what is queued and close the database (a session, or a runtime's saver, leaves it open)."""
        if self._core.owns_engine and self._owned is None:
            self._core.engine.close()

    async def aclose(self) -> None:
        """Do :meth:`close` without blocking the event loop."""
        await arun(reading.in_thread(self.close))

    def __enter__(self) -> Self:
        """Return the saver."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the saver; of a session, raise what went wrong first."""
        self.close()
        if error is None:
            self.check()

    async def __aenter__(self) -> Self:
        """Return the saver."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the saver; of a session, raise what went wrong first."""
        await self.aclose()
        if error is None:
            self.check()

    # --- LangGraph's interface --------------------------------------------------------------------------------------

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return a checkpoint with its writes: the one the config names, else the head of the namespace.

        Raises:
            InvalidThreadId: the config names no usable thread.
            CheckpointCorrupt: stored content is missing or damaged.

        """
        return run(reading.get_tuple(self.context, config))

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Do :meth:`get_tuple` from an event loop."""
        if self._owned is not None:
            self._owned.loop = asyncio.get_running_loop()  # LangGraph loads first of all, and stores from there
        return await arun(reading.get_tuple(self.context, config))

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 (LangGraph's name)
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Yield checkpoints, newest first by id; nothing is held between two of them.

        Args:
            config: a thread (and namespace, and checkpoint id); None: all threads.
            filter: metadata values that must be equal.
            before: only checkpoints with a smaller id than this config's.
            limit: at most so many; 0 gives none, a negative one is refused.

        """
        pages = reading.Listing(self.context, config, filter, before, limit)
        while (page := run(pages.next())) is not None:
            yield from page

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 (LangGraph's name)
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Do :meth:`list` from an event loop."""
        pages = reading.Listing(self.context, config, filter, before, limit)
        while (page := await arun(pages.next())) is not None:
            for found in page:
                yield found

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint and return its config.

        Raises:
            StaleWriter: at L0, another writer moved the thread on since this invocation loaded it.
            ThreadOwned: at L0, a live run owns the thread.
            LeaseLost, LeaseExpired, LeaseReleased, ThreadMismatch: at L1.
            OutcomeUnknown: the connection was lost around the commit and the receipt cannot be read.

        """
        return run(writing.put(self.context, config, checkpoint, metadata, new_versions))

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Do :meth:`put` from an event loop; a cancelled caller does not stop the commit."""
        return await arun(writing.put(self.context, config, checkpoint, metadata, new_versions))

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Store the writes of a task; its checkpoint may not be stored yet. Raises as :meth:`put`."""
        run(writing.put_writes(self.context, config, writes, task_id, task_path))

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Do :meth:`put_writes` from an event loop."""
        await arun(writing.put_writes(self.context, config, writes, task_id, task_path))

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Return for each channel the ancestors' writes since the nearest stored value, and that value (``seed``)."""
        return run(delta.channel_history(self.context, config, channels))

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Do :meth:`get_delta_channel_history` from an event loop."""
        return await arun(delta.channel_history(self.context, config, channels))

    def get_next_version(self, current: str | int | None, channel: None) -> str:  # noqa: ARG002 (LangGraph's signature)
        """Return the next version of a channel: a counter that sorts as text, and a random part.

        The random part keeps two forks of one checkpoint from giving one version to two values (contract §1).
        """
        if current is None:
            counter = 0
        elif isinstance(current, int):
            counter = current
        else:
            counter = int(current.split(".")[0])
        return f"{counter + 1:032}.{random.random():.16f}"  # noqa: S311 (not a secret)
