"""Whether this process still holds a lease: asked where no other fenced command stands before what is done next."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from runtime_persist.model import limits

if TYPE_CHECKING:
    from runtime_persist.engine.core import Engine
    from runtime_persist.engine.flow import Flow
    from runtime_persist.engine.owned import OwnedRun


def renew(owned: OwnedRun) -> Flow[None]:
    """Renew a lease now, and after it that of the run whose node started this one (raises LeaseLost, LeaseExpired)."""
    at: OwnedRun | None = owned
    while at is not None:
        sent = time.monotonic()
        at.renewed(sent, (yield at.send_renewal()))
        at = at.within


def hold(engine: Engine, owned: OwnedRun) -> Flow[None]:
    """Renew a lease before the first step under it, if its answer took so long that it may be somebody else's by now.

    The process was stopped, say, or the connection was lost behind the commit: no fenced command stands between such
    an answer and the code that it lets run.

    Raises:
        LeaseLost, LeaseExpired: it is not ours any more; nothing may be executed.

    """
    if time.monotonic() - owned.renewed_at <= owned.ttl / limits.LEASE_RENEWALS_PER_TTL:
        return
    try:
        yield from renew(owned)
    except BaseException:
        engine.heartbeats.remove(owned)
        raise
