"""A recovery bundle as the bytes of one file: rows, and all content that they refer to, without secrets."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from runtime_persist.errors import BundleTooLarge
from runtime_persist.inspector.bundles import archive, content
from runtime_persist.inspector.bundles.manifest import Entry, Manifest, Redaction
from runtime_persist.inspector.bundles.recovery import (
    ROWS_MAX,
    entry_of,
    load_contents,
    read_bundle,
    rows_bytes,
    rows_entry,
)
from runtime_persist.inspector.bundles.redact import Redactor
from runtime_persist.inspector.bundles.rewriting import rewritten
from runtime_persist.model import limits
from runtime_persist.model.payload import SEGMENT, PayloadRef
from runtime_persist.queries.bundles import PARTS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from runtime_persist.engine import Engine, Flow
    from runtime_persist.plan import Row

WITHHELD: Final = "withheld"
"""Type tag of a value that was left out."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How large a bundle may become.

    Attributes:
        rows: of one part.
        content_bytes: of all content together, as it is uncompressed.

    """

    rows: int = ROWS_MAX
    content_bytes: int = 1_073_741_824


def export(
    engine: Engine,
    run_id: str,
    *,
    secrets: bool = False,
    without_content: bool = False,
    bounds: Limits = Limits(),
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> Flow[list[bytes]]:
    """Return the file of a run's bundle, in parts.

    Args:
        engine: the database.
        run_id: the run.
        secrets: leave SecretStr, SecretBytes and values that cannot be looked into as they are.
        without_content: only the rows, and the values that lie in them.
        bounds: how large it may become.
        progress: is told how many pieces of content were read of how many that are known yet.

    Raises:
        RunNotFound: there is no such run.
        BundleTooLarge: it would be larger than ``bounds``, or than a file of this format can be.
        CheckpointCorrupt: something that is stored is missing, or is not what was stored.

    """
    bundle = yield from read_bundle(engine, run_id, rows_max=bounds.rows)
    contents: dict[bytes, bytes] = {}
    if not without_content:
        contents = yield from load_contents(engine, bundle, bounds.content_bytes, progress)
    redactor = Redactor()
    rows = bundle.rows
    if not secrets:
        rows, contents = _redacted(rows, contents, redactor, complete=not without_content)
    names = [(f"rows/{part.name}.jsonl", rows_bytes(part.name, rows[part.name])) for part in PARTS]
    names += [(f"content/{address.hex()}", data) for address, data in contents.items()]
    entries = sorted(names)
    manifest = bundle.manifest.model_copy(
        update={
            "content": "none" if without_content else "complete",
            "redaction": _redaction(bundle.manifest.redaction, redactor, redacted=not secrets),
            "entries": tuple(_entry(name, data, rows) for name, data in entries),
        }
    )
    return _file(manifest, entries)


def _redaction(before: Redaction, redactor: Redactor, *, redacted: bool) -> Redaction:
    """Return what was done to values: of those that came out of a redacted bundle that stays true."""
    starred, withheld = max(before.starred, redactor.starred), max(before.withheld, redactor.withheld)
    return Redaction(redacted=redacted or before.redacted, starred=starred, withheld=withheld)


def _entry(name: str, data: bytes, rows: Mapping[str, Sequence[Row]]) -> Entry:
    part = name.removeprefix("rows/").removesuffix(".jsonl")
    return rows_entry(part, rows[part]) if name.startswith("rows/") else entry_of(name, data)


def _file(manifest: Manifest, entries: Sequence[tuple[str, bytes]]) -> list[bytes]:
    everything = [(archive.MANIFEST, manifest.encoded()), *entries]
    size = archive.length((name, len(data)) for name, data in everything)
    if len(everything) > archive.ENTRIES_MAX or size > archive.FILE_BYTES_MAX:
        msg = f"the bundle would have {len(everything):,} entries and {size:,} bytes; leave its content out"
        raise BundleTooLarge(msg, entries=len(everything), size=size)
    return list(archive.encoded(everything))


# --- redaction ------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Values:
    """Values without their secrets: where each was, and where it is now."""

    contents: Mapping[bytes, bytes]
    redactor: Redactor
    complete: bool
    made: dict[bytes, bytes]
    done: dict[PayloadRef, PayloadRef]

    def ref(self, ref: PayloadRef, where: str) -> PayloadRef:
        """Return what refers to a value without its secrets; itself, when it has none."""
        found = self.done.get(ref)
        if found is None:
            found = self.done[ref] = self._ref(ref, where)
        return found

    def _ref(self, ref: PayloadRef, where: str) -> PayloadRef:
        if not self.complete and ref.inline is None:
            return self._outside(ref)
        data = content.joined(ref, self.contents.__getitem__, where)
        redacted = self.redactor.redacted(ref.type, data)
        if redacted is None:
            return PayloadRef(WITHHELD, 0, inline=b"")
        if redacted == data:
            return ref
        if len(redacted) <= limits.INLINE_MANIFEST_BYTES_MAX or ref.inline is not None:
            return PayloadRef(ref.type, ref.size, inline=redacted)
        address = hashlib.sha256(redacted).digest()[: limits.ADDRESS_BYTES]
        self.made[address] = redacted
        return PayloadRef(ref.type, ref.size, address=address)

    def _outside(self, ref: PayloadRef) -> PayloadRef:
        """Return a reference whose content stays in the database; what lies of it in its row may hold a secret."""
        if all(piece.depth >= SEGMENT for piece in ref.pieces):
            return ref
        self.redactor.withheld += 1
        return PayloadRef(WITHHELD, 0, inline=b"")


def _redacted(
    rows: Mapping[str, Sequence[Row]], contents: Mapping[bytes, bytes], redactor: Redactor, *, complete: bool
) -> tuple[dict[str, list[Row]], dict[bytes, bytes]]:
    """Return rows and content without secrets; content that only values with secrets named is left out."""
    found = _Values(contents, redactor, complete, {}, {})
    made: dict[str, list[Row]] = {name: list(part) for name, part in rewritten(rows, found.ref).items()}
    return made, _named(made, {**contents, **found.made}) if complete else {}


def _named(rows: Mapping[str, Sequence[Row]], contents: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
    """Return the content that rows refer to."""
    found: dict[bytes, bytes] = {}
    pieces = [piece for value in content.values(rows) for piece in value.ref.stored()]
    while pieces:
        piece = pieces.pop()
        found[piece.data] = contents[piece.data]
        pieces += content.deeper([piece], contents.__getitem__, set(found))
    return found
