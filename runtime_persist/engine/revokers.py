"""Revokers: what proves, for one kind of execution domain, that it can no longer write."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Protocol

from runtime_persist.engine import directories, processes
from runtime_persist.engine.processes import Life, Seen
from runtime_persist.errors import InvalidInput
from runtime_persist.model.domains import PROCESS, WORKSPACE, Domain, Proof, Revoked, Unproved
from runtime_persist.model.processes import ProcessIdentity
from runtime_persist.model.text import said_by

_log = logging.getLogger("runtime_persist.domains")


class Revoker(Protocol):
    """Takes away the right to write of one kind of domain, and says how it is known."""

    def revoke(self, domain: Domain) -> Revoked | Unproved:
        """Return the proof that nothing writes to the domain any more, or why there is none.

        It is called outside any transaction, maybe on several machines at once and again later, on a thread of its
        own, where it may wait a while. An exception counts as no proof.
        """


class Revokers:
    """The revokers of a process, by kind."""

    def __init__(self) -> None:
        """Know the built-in kinds."""
        self._known: dict[str, Revoker] = {PROCESS: ProcessRevoker(), WORKSPACE: WorkspaceRevoker()}

    def register(self, kind: str, revoker: Revoker) -> None:
        """Use ``revoker`` for domains of ``kind`` from now on."""
        self._known[kind] = revoker

    def revoke(self, domain: Domain) -> Revoked | Unproved:
        """Ask the revoker of the domain's kind."""
        revoker = self._known.get(domain.kind)
        if revoker is None:
            return Unproved(f"no revoker of kind {domain.kind!r} is registered in this process")
        try:
            answer = revoker.revoke(domain)
        except Exception as error:  # noqa: BLE001 (of somebody else's making: no proof)
            _log.exception("the revoker of kind %r failed", domain.kind)
            return Unproved(f"the revoker failed: {type(error).__name__}: {said_by(error)}")
        known: object = answer  # of somebody else's making
        if isinstance(known, Revoked | Unproved):
            return known
        return Unproved(f"the revoker returned a {type(known).__name__}, neither Revoked nor Unproved")


class ProcessRevoker:
    """Ends the process with its group and everything that carries its mark; proves that they are gone."""

    def revoke(self, domain: Domain) -> Revoked | Unproved:
        """See :func:`runtime_persist.engine.processes.end`."""
        try:
            identity = ProcessIdentity.of(domain.handle)
        except InvalidInput as error:
            return Unproved(error.message)
        return processes.end(identity, mark=domain.domain_id)


class WorkspaceRevoker:
    """Proves that whoever opened a directory has let go of it, and ends what was started with its mark.

    It never ends the process that opened the directory: that may be a worker which executes other runs.
    """

    def revoke(self, domain: Domain) -> Revoked | Unproved:
        """Look at the opener's process and at the directory's lock."""
        try:
            identity, path = ProcessIdentity.of(domain.handle), Path(domain.handle["path"])
        except (InvalidInput, KeyError, TypeError) as error:
            return Unproved(f"not the handle of a workspace: {said_by(error)}")
        opener = processes.look(identity)
        if opener.how is Proof.REBOOTED:
            return Revoked(Proof.REBOOTED, opener.saw)
        held = self._held(opener, path)
        if held is not None:
            return Unproved(f"{held}; {opener.saw}")
        rest = processes.end_marked(domain.domain_id)
        if isinstance(rest, Unproved):
            return rest
        saw = f"the lock of {path} is free; {opener.saw}; {rest.saw}"
        return Revoked(rest.how if opener.life is Life.GONE else Proof.CLOSED, saw)

    def _held(self, opener: Seen, path: Path) -> str | None:
        """Return why the directory may be in use (None: it is not, but for what was started in it)."""
        if opener.life is Life.UNKNOWN:
            return "its lock means nothing here"
        if not directories.is_free(path):
            return f"the lock of {path} is held"
        if opener.life is Life.ALIVE and not path.exists():
            return f"{path} cannot be looked at from here"
        return None
