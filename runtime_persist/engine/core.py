"""The opened database: URL, schema, space, coordinator, heartbeats."""

from __future__ import annotations

import os
import secrets
import socket
import threading
from typing import TYPE_CHECKING

from runtime_persist.commands.create_space import CreateSpace
from runtime_persist.contentstore import ContentStore
from runtime_persist.coordinator import CommitCoordinator
from runtime_persist.dialects import DatabaseUrl, dialect_of, parse_url
from runtime_persist.dialects.url import MEMORY
from runtime_persist.drivers import Hook, open_driver
from runtime_persist.engine.heartbeat import Heartbeats
from runtime_persist.engine.notifications import Notifications
from runtime_persist.engine.revokers import Revokers
from runtime_persist.engine.wishes import Wishes
from runtime_persist.errors import Closed, InvalidInput, InvariantBroken, SpaceIncomplete
from runtime_persist.model import limits
from runtime_persist.model.ids import is_short_name, new_id
from runtime_persist.model.keys import SpaceKeys
from runtime_persist.queries import spaces
from runtime_persist.schema import migrate

if TYPE_CHECKING:
    from pathlib import Path


class Engine:
    """One database, one space, shared by everything a runtime or saver hands out.

    Attributes:
        url: the parsed URL.
        dialect: how its database is spoken to.
        space: tenant.
        lease_ttl: seconds a lease lasts without renewal.
        worker_id: host, process and a random part; shown, never compared.
        max_value_bytes: larger serialized values are refused.
        revokers: what proves, by kind, that execution domains can no longer write.
        owner: whose content this engine stores and reads: the space (threads share equal content).

    """

    def __init__(
        self,
        url: str | Path,
        *,
        space: str = "default",
        schema: str | None = None,
        auto_setup: bool = True,
        lease_ttl: float = limits.LEASE_TTL_SECONDS,
        max_value_bytes: int = limits.VALUE_BYTES_MAX,
        hook: Hook | None = None,
    ) -> None:
        """Open the database; with ``auto_setup`` also bring its tables up to date.

        Raises:
            InvalidUrl, InvalidInput: arguments that cannot be used (nothing was opened).
            SchemaMissing, SchemaTooNew, DatabaseUnavailable, MissingDependency: from the database.

        """
        self.url: DatabaseUrl = parse_url(url)
        if not is_short_name(space):
            msg = f"space must be a non-empty text of at most {limits.NAME_BYTES_MAX} bytes, not {space!r:.100}"
            raise InvalidInput(msg, space=f"{space!r:.100}")
        if not limits.LEASE_TTL_SECONDS_MIN <= lease_ttl <= limits.LEASE_TTL_SECONDS_MAX:
            low, high = limits.LEASE_TTL_SECONDS_MIN, limits.LEASE_TTL_SECONDS_MAX
            msg = f"lease_ttl must be between {low} and {high} seconds, not {lease_ttl}"
            raise InvalidInput(msg, lease_ttl=lease_ttl)
        if type(max_value_bytes) is not int or max_value_bytes < 1:
            msg = f"max_value_bytes must be a positive number of bytes, not {max_value_bytes!r}"
            raise InvalidInput(msg, max_value_bytes=repr(max_value_bytes))
        self.max_value_bytes = max_value_bytes
        self.space = space
        self.owner = "space"
        self.lease_ttl = lease_ttl
        self.worker_id = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(3)}"
        self.dialect = dialect_of(self.url, schema)
        migrate.check_schema_name(self.dialect)
        self._driver = open_driver(self.url, self.dialect, hook)
        self._lock = threading.Lock()
        self._coordinator: CommitCoordinator | None = None
        self._content: ContentStore | None = None
        self._current = False
        self._closed = False
        self.heartbeats = Heartbeats(lease_ttl)
        self.revokers = Revokers()
        self.notifications = Notifications(self._driver, lambda: self.coordinator.keys.secret)
        self.wishes = Wishes(self.notifications)
        if auto_setup:
            try:
                self.setup()
            except BaseException:
                self.close()
                raise

    def setup(self) -> None:
        """Create or upgrade the tables, and make the space. Doing it again changes nothing."""
        if self.url.location == MEMORY:
            if self._coordinator is None:
                self._driver.script(migrate.sql(self.dialect))
        else:
            migrate.upgrade(self.url, self.dialect)
        self._current = True
        _ = self.coordinator

    @property
    def coordinator(self) -> CommitCoordinator:
        """Return the coordinator; its first use looks at the schema version and reads (or makes) the space.

        Raises:
            SchemaMissing, SchemaTooNew: the tables are not those this code writes.
            Closed: after :meth:`close`.

        """
        found = self._coordinator
        if found is not None:
            return found
        with self._lock:
            if self._closed:
                raise Closed
            if self._coordinator is None:
                self._coordinator = self._load()
            return self._coordinator

    @property
    def content(self) -> ContentStore:
        """Return the content of this engine's owner (raises as :attr:`coordinator`)."""
        found = self._content
        if found is None:
            keys = self.coordinator.keys
            with self._lock:
                driver = self._driver
                found = self._content = self._content or ContentStore(keys, self.owner, lambda: driver.losses)
        return found

    @property
    def ttl_us(self) -> int:
        """Return the lease's length in microseconds."""
        return int(self.lease_ttl * 1_000_000)

    def close(self) -> None:
        """Finish what is queued and let go of threads and connections. Closing twice does nothing."""
        self._closed = True
        self.heartbeats.close()
        self._driver.close()
        self.notifications.close()  # behind the last commit, which is still told

    def importer(self) -> CommitCoordinator:
        """Return a door to the space as it is before it exists: for an import, which makes it.

        Raises:
            SchemaMissing, SchemaTooNew: the tables are not those this code writes.

        """
        self._check_schema()
        return CommitCoordinator(self._driver, SpaceKeys(self.space, b""))

    def _check_schema(self) -> None:
        if not self._current:  # not looked at yet: whoever set the tables up knows their version
            migrate.check(None if self.url.location == MEMORY else migrate.current(self.url, self.dialect))

    def _load(self) -> CommitCoordinator:
        nobody = self.importer()
        found = nobody.read("read_space", lambda: spaces.space(self.space)).result()
        if found is None:
            command = CreateSpace(space=self.space, command_id=new_id(), secret=secrets.token_bytes(32))
            nobody.commit(command).result()
            found = nobody.read("read_space", lambda: spaces.space(self.space)).result()
        if found is None:
            raise InvariantBroken
        if found["bundle"] is not None and found["whole_us"] is None:
            msg = f"a bundle was being imported into space {self.space!r}, and that never ended; import it again"
            raise SpaceIncomplete(msg, space=self.space, bundle=found["bundle"])
        keys = SpaceKeys(self.space, bytes(found["secret"]))
        return CommitCoordinator(self._driver, keys, self.notifications, found["as_of_us"])
