"""What happens to leases behind their holders' backs."""

from tests.fixtures.raw import Raw


def run_out(raw: Raw) -> None:
    """Let every lease run out now, without waiting for it."""
    raw.rows("UPDATE rp_runs SET expires_us = 1 WHERE phase <> 'released'")


def take_away(raw: Raw) -> None:
    """Let somebody else take every lease over."""
    raw.rows("UPDATE rp_runs SET epoch = epoch + 1")
