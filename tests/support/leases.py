"""What happens to leases behind their holders' backs, and how often their holders renew them."""

from runtime_persist.model import limits
from tests.fixtures.raw import Raw


def run_out(raw: Raw) -> None:
    """Let every lease run out now, without waiting for it."""
    raw.rows("UPDATE rp_runs SET expires_us = 1 WHERE phase <> 'released'")


def renew_often() -> None:
    """Let engines that are opened from now on renew a lease of 30 seconds each 20th of a second.

    So a test sees heartbeats at once, and no lease runs out because a machine is slow.
    """
    limits.LEASE_RENEWALS_PER_TTL = 600  # type: ignore[misc]


def take_away(raw: Raw) -> None:
    """Let somebody else take every lease over."""
    raw.rows("UPDATE rp_runs SET epoch = epoch + 1")
