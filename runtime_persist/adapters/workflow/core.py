"""What all clones of a saver share (LangGraph makes clones with copy.copy): engine, memory, manifests."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, NamedTuple

from runtime_persist.adapters.workflow.memory import Invocations
from runtime_persist.contentstore.cache import recent
from runtime_persist.model import limits

if TYPE_CHECKING:
    from langgraph.checkpoint.serde.base import SerializerProtocol

    from runtime_persist.adapters.workflow.encoding import Manifest
    from runtime_persist.engine import Engine, OwnedRun

_Key = tuple[str, str, str]


class SaverCore:
    """Shared by a saver, its sessions and all their clones.

    Attributes:
        engine: the opened database.
        owns_engine: closing the saver closes it.
        optimistic: whether stale writers are refused (False only for comparison).
        metadata_keys: names a config's values are stored under as metadata (None: all but a secret's).
        invocations: what each invocation loaded.

    """

    def __init__(
        self,
        engine: Engine,
        *,
        owns_engine: bool,
        optimistic: bool,
        metadata_keys: frozenset[str] | None = None,
    ) -> None:
        """Share ``engine``."""
        self.metadata_keys = metadata_keys
        self.engine = engine
        self.owns_engine = owns_engine
        self.optimistic = optimistic
        self.invocations = Invocations()
        self._manifests: OrderedDict[_Key, tuple[Manifest, float, int]] = OrderedDict()
        self._lock = threading.Lock()

    def manifest(self, key: _Key) -> Manifest | None:
        """Return the manifest of a stored checkpoint, when this process saw it a short while ago."""
        with self._lock:
            found, seen, losses = self._manifests.get(key, (None, 0.0, 0))
            if found is None or not recent(seen) or losses != self.engine.coordinator.losses:
                return None
            self._manifests.move_to_end(key)
            return found

    def remember(self, key: _Key, manifest: Manifest) -> None:
        """Keep the manifest of a stored checkpoint: the next put carries its references over."""
        with self._lock:
            self._manifests[key] = manifest, time.time(), self.engine.coordinator.losses
            self._manifests.move_to_end(key)
            if len(self._manifests) > limits.MANIFESTS_CACHED_MAX:
                self._manifests.popitem(last=False)

    def forget_thread(self, thread_id: str) -> None:
        """Drop the manifests of a deleted thread."""
        with self._lock:
            for key in [key for key in self._manifests if key[0] == thread_id]:
                del self._manifests[key]


class SaverContext(NamedTuple):
    """What reading and writing need of a saver: the shared core, its serializer, and the run it writes under."""

    core: SaverCore
    serde: SerializerProtocol
    owned: OwnedRun | None
