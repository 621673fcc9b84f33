"""Opens the file of a bundle: without a database, without the application, and nothing in it is executed.

Everything is compared with what this code would have written, so a byte that was changed is named with its entry and
its offset. That proves that the bundle is whole and as it was written. It does not prove who wrote it: whoever can
change a bundle can also make its hashes anew.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, Final, NoReturn

from pydantic import BaseModel, ConfigDict, ValidationError

from runtime_persist.errors import BundleTooLarge, CheckpointCorrupt, InvalidInput, RuntimePersistError, UnknownFormat
from runtime_persist.inspector.bundles import archive, content
from runtime_persist.inspector.bundles.manifest import FORMAT, FORMATS, ROW_MODELS, Entry, Manifest
from runtime_persist.inspector.bundles.recovery import RecoveryBundle, check_rows
from runtime_persist.model.payload import LITERAL, SEGMENT, pieces_of
from runtime_persist.queries.bundles import PART_OF
from runtime_persist.schema.migrate import VERSION

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from runtime_persist.inspector.bundles.archive import Placed
    from runtime_persist.model.payload import Piece
    from runtime_persist.plan import Row

_MANIFEST_BYTES_MAX: Final = 33_554_432
_DEPTH_MAX: Final = 64
FILE_BYTES_MAX: Final = 2_147_483_648
"""Of a file that is opened, unless asked otherwise: it is read into memory."""
PROVES: Final = "it is whole and as it was written; who wrote it is not proved"


class Verified(BaseModel):
    """What was found of a file.

    Attributes:
        bundle: SHA-256 of its manifest, which has the hash of everything else: the name of this bundle.
        proves: what that says, and what not.

    """

    model_config = ConfigDict(frozen=True)

    bundle: str
    run_id: str
    space: str
    read_us: int
    entries: int
    rows: int
    content_bytes: int
    content: str
    redacted: bool
    proves: str = PROVES


def verify(path: Path, *, bytes_max: int = FILE_BYTES_MAX) -> Verified:
    """Verify a file (raises as :func:`open_bundle`)."""
    manifest = open_bundle(path, bytes_max=bytes_max).manifest
    return Verified(
        bundle=hashlib.sha256(manifest.encoded()).hexdigest(),
        run_id=manifest.run_id,
        space=manifest.space,
        read_us=manifest.read_us,
        entries=len(manifest.entries),
        rows=sum(entry.rows or 0 for entry in manifest.entries),
        content_bytes=sum(entry.size for entry in manifest.entries if entry.rows is None),
        content=manifest.content,
        redacted=manifest.redaction.redacted,
    )


def open_bundle(path: Path, *, bytes_max: int = FILE_BYTES_MAX) -> RecoveryBundle:
    """Read a file, and verify all of it.

    Raises:
        InvalidInput: it cannot be read.
        BundleTooLarge: it has more than ``bytes_max`` bytes.
        UnknownFormat: another version of this package wrote it.
        CheckpointCorrupt: something is missing, or wrong; ``entry`` and ``offset`` say where.

    """
    try:
        with path.open("rb") as file:
            data = file.read(bytes_max + 1)
    except OSError as error:
        msg = f"{path} cannot be read: {error.strerror}"
        raise InvalidInput(msg, path=str(path)) from error
    if len(data) > bytes_max:
        msg = f"{path} has more than {bytes_max:,} bytes"
        raise BundleTooLarge(msg, limit=bytes_max)
    return parsed(data)


def parsed(data: bytes) -> RecoveryBundle:
    """Return the bundle of a file's bytes (raises as :func:`open_bundle`)."""
    raw = archive.manifest_bytes(data, _MANIFEST_BYTES_MAX)
    manifest = _manifest(raw)
    names = [(archive.MANIFEST, len(raw)), *((entry.name, entry.size) for entry in manifest.entries)]
    places = archive.places(names)
    for placed, entry in zip(places[1:], manifest.entries, strict=True):
        _check_hash(data, placed, entry)
    archive.compare(data, places)
    rows: dict[str, list[Row]] = {}
    contents: dict[bytes, bytes] = {}
    for placed, entry in zip(places[1:], manifest.entries, strict=True):
        part = data[placed.start : placed.start + placed.size]
        if entry.rows is None:
            contents[bytes.fromhex(entry.name.removeprefix("content/"))] = part
        else:
            name = entry.name.removeprefix("rows/").removesuffix(".jsonl")
            rows[name] = _rows(name, part, placed, entry.rows)
    bundle = RecoveryBundle(manifest, rows, contents)
    _check(bundle)
    return bundle


def _manifest(raw: bytes) -> Manifest:
    start = archive.places([(archive.MANIFEST, 0)])[0].start
    try:
        said: Any = json.loads(raw)
    except (ValueError, RecursionError):
        _wrong("it is no JSON", archive.MANIFEST, start)
    if not isinstance(said, dict):
        _wrong("it is no JSON object", archive.MANIFEST, start)
    if said.get("format") != FORMAT or said.get("formats") != FORMATS or said.get("schema_version") != VERSION:
        shown = {name: said.get(name) for name in ("format", "formats", "schema_version")}
        msg = f"bundle of {str(shown)[:200]}; this code knows format {FORMAT} of schema {VERSION} with {FORMATS}"
        raise UnknownFormat(msg, entry=archive.MANIFEST)
    try:
        manifest = Manifest.model_validate_json(raw)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        _wrong(f"it is no manifest: {where}: {first['msg']}", archive.MANIFEST, start)
    _same(raw, manifest.encoded(), archive.MANIFEST, start)
    names = [entry.name for entry in manifest.entries]
    if names != sorted(set(names)):
        _wrong("its entries are not in order, or one is there twice", archive.MANIFEST, start)
    for entry in manifest.entries:
        if entry.name.startswith("rows/") is (entry.rows is None):
            _wrong(f"entry {entry.name} is not what its name says", archive.MANIFEST, start)
    parts = {name.removeprefix("rows/").removesuffix(".jsonl") for name in names if name.startswith("rows/")}
    if parts != set(PART_OF):
        odd = ", ".join(sorted(parts ^ set(PART_OF)))
        _wrong(f"parts are missing, or unknown: {odd}", archive.MANIFEST, start)
    return manifest


def _check_hash(data: bytes, placed: Placed, entry: Entry) -> None:
    found = data[placed.start : placed.start + placed.size]
    if len(found) < placed.size:
        _wrong("the file ends too early", entry.name, len(data))
    if hashlib.sha256(found).hexdigest() == entry.sha256:
        return
    at = archive.damaged_byte(found, archive.checksum_said(data, placed))
    if at is not None:
        _wrong("a byte is damaged", entry.name, placed.start + at)
    _wrong(f"its {placed.size:,} bytes do not have the hash that the manifest says", entry.name, placed.start)


def _rows(name: str, data: bytes, placed: Placed, count: int) -> list[Row]:
    """Return the rows of a part: each line exactly as this code writes it, in the order of their key."""
    model = ROW_MODELS[name]
    key = [column.name for column in PART_OF[name].key]
    found: list[Row] = []
    at = placed.start
    before: tuple[Any, ...] | None = None
    for line in data.splitlines(keepends=True):
        try:
            row = model.model_validate_json(line)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            _wrong(f"row {len(found) + 1}: {'.'.join(map(str, first['loc']))}: {first['msg']}", placed.name, at)
        _same(line, row.model_dump_json().encode() + b"\n", placed.name, at)
        values = dict(row)
        place = tuple(values[column] for column in key)
        if before is not None and place <= before:
            _wrong(f"row {len(found) + 1} is not in its order, or there twice", placed.name, at)
        found.append(values)
        before = place
        at += len(line)
    if len(found) != count:
        _wrong(f"it has {len(found)} rows instead of {count}", placed.name, placed.start)
    return found


def _same(data: bytes, expected: bytes, entry: str, start: int) -> None:
    if data == expected:
        return
    pairs = enumerate(zip(data, expected, strict=False))
    at = next((number for number, (one, other) in pairs if one != other), min(len(data), len(expected)))
    _wrong("it is not in the one form it can have", entry, start + at)


def _check(bundle: RecoveryBundle) -> None:
    """Compare the rows with the manifest, with one another, and with the content."""
    manifest, rows = bundle.manifest, bundle.rows
    check_rows(rows)
    run = rows["runs"][0]
    registered = next((row["version"] for row in rows["graphs"]), None)
    said = (
        manifest.run_id,
        manifest.thread_id,
        manifest.graph,
        manifest.definition.run,
        manifest.definition.registered,
    )
    if (run["run_id"], run["thread_id"], run["graph"], run["graph_version"], registered) != said:
        _wrong("it is not about the run whose row is here", archive.MANIFEST, 0)
    for name in ("attempts", "domains", "events"):
        if any(row["run_id"] != manifest.run_id for row in rows[name]):
            _wrong("a row is of another run", f"rows/{name}.jsonl", 0)
    sizes = _Sizes(bundle.contents)
    for value in bundle.values():
        if manifest.content == "complete":
            sizes.check(value)
    extra = bundle.contents.keys() - sizes.named
    if extra:
        _wrong("no row refers to it", f"content/{min(extra).hex()}", 0)


class _Sizes:
    """The bytes that values are put together from; a page that many values name is looked at once.

    Attributes:
        named: the addresses that were met.

    """

    def __init__(self, contents: Mapping[bytes, bytes]) -> None:
        self.named: set[bytes] = set()
        self._contents = contents
        self._known: dict[tuple[bytes, int], int] = {}

    def check(self, value: content.Value) -> None:
        ref, where = value.ref, value.said()
        if ref.inline is not None:
            return
        try:
            size = sum(self._of(piece, where) for piece in (*ref.stored(), *_literals(ref.pieces)))
        except RuntimePersistError:
            raise
        except (ValueError, TypeError) as error:
            msg = f"{where} cannot be put together: {error}"
            raise CheckpointCorrupt(msg, where=where) from error
        if size != ref.size:
            msg = f"{where} has {size:,} bytes instead of {ref.size:,}"
            raise CheckpointCorrupt(msg, where=where)

    def _of(self, piece: Piece, where: str) -> int:
        address, depth = piece
        if depth == LITERAL:
            return len(address)
        if (address, depth) not in self._known:
            self._known[address, depth] = self._look(address, depth, where)
        return self._known[address, depth]

    def _look(self, address: bytes, depth: int, where: str) -> int:
        found = self._contents.get(address)
        if found is None or depth > _DEPTH_MAX:
            msg = f"content of {where} is missing (address {address.hex()})"
            raise CheckpointCorrupt(msg, where=where, address=address.hex(), entry=f"content/{address.hex()}")
        self.named.add(address)
        size = len(found)
        if depth > SEGMENT:
            size = 0
            for piece in pieces_of(found):
                if piece.depth >= depth:
                    msg = f"a page of {where} names a page that is not below it"
                    raise CheckpointCorrupt(msg, where=where, address=address.hex())
                size += self._of(piece, where)
        if not size:  # of which any number could be put together without end
            msg = f"content of {where} is empty (address {address.hex()})"
            raise CheckpointCorrupt(msg, where=where, address=address.hex(), entry=f"content/{address.hex()}")
        return size


def _literals(pieces: Iterable[Piece]) -> Iterable[Piece]:
    return (piece for piece in pieces if piece.depth == LITERAL)


def _wrong(what: str, entry: str, offset: int) -> NoReturn:
    msg = f"{entry}: {what} (offset {offset:,})"
    raise CheckpointCorrupt(msg, entry=entry, offset=offset)
