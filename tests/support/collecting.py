"""Time that goes by for collections of content: for the marks in the database, and for what a process remembers."""

from dataclasses import replace
from typing import Any

from runtime_persist.testing.faults import check_invariants, read_rows
from tests.fixtures.raw import Raw

HOUR_US = 3_600_000_000


def later(raw: Raw, hours: float, *savers: Any) -> None:
    """As if that many hours had gone by since the marks were made, and since the savers sent and read what they did."""
    # In the order of the addresses, as commands lock them: others may be at work.
    raw.rows(
        f"WITH locked AS (SELECT address FROM rp_blobs ORDER BY address{raw.for_update}) "
        "UPDATE rp_blobs SET unused_us = unused_us - ? WHERE address IN (SELECT address FROM locked)",
        int(hours * HOUR_US),
    )
    seconds = hours * 3_600
    for saver in savers:
        known = saver._core.engine.content.known._seen
        for address, (seen, losses) in known.items():
            known[address] = seen - seconds, losses
        manifests = saver._core._manifests
        for key, (manifest, seen, losses) in manifests.items():
            manifests[key] = replace(manifest, seen=manifest.seen - seconds), seen - seconds, losses


def blobs(raw: Raw) -> set[bytes]:
    """The addresses that are stored."""
    return {bytes(row["address"]) for row in raw.rows("SELECT address FROM rp_blobs")}


def marked(raw: Raw) -> set[bytes]:
    """The addresses that are marked as unused."""
    return {bytes(row["address"]) for row in raw.rows("SELECT address FROM rp_blobs WHERE unused_us IS NOT NULL")}


def whole(saver: Any) -> None:
    """Check that every address that a row refers to has its content, and all the other invariants."""
    assert check_invariants(read_rows(saver._core.engine)) == []
