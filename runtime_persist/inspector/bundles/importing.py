"""A bundle's file as a read-only space of a database: for support, and for tests of what happened once.

The space is marked as not whole from its first row to its last, and cannot be opened so long. Its content gets the
addresses, and its rows the hashes, that this space's own secret makes: so all that reads a space reads this one. No
value is loaded, so nothing of a file is ever executed.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel, ConfigDict

from runtime_persist.commands.import_bundle import ImportBundle
from runtime_persist.contentstore import pack
from runtime_persist.errors import InvalidInput, InvariantBroken, SpaceTaken
from runtime_persist.inspector.bundles.rewriting import rewritten
from runtime_persist.model.keys import SpaceKeys
from runtime_persist.model.payload import LITERAL, SEGMENT, Blob, PayloadRef, Piece, page_of, pieces_of
from runtime_persist.queries import spaces

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from runtime_persist.engine import Engine, Flow
    from runtime_persist.inspector.bundles.recovery import RecoveryBundle

_PAGE_ROWS: Final = 200
_PAGE_BYTES: Final = 4_194_304
_SECRET_BYTES: Final = 32


class Imported(BaseModel):
    """What was imported.

    Attributes:
        space: where it is.
        bundle: SHA-256 of its manifest.
        as_of_us: the moment of its rows, by the clock of the database it came from.
        redacted: secrets in it are stars, and what only its own code can open was left out.
        new: it was not there before.

    """

    model_config = ConfigDict(frozen=True)

    space: str
    bundle: str
    run_id: str
    thread_id: str
    as_of_us: int
    redacted: bool
    rows: int
    new: bool


def space_of(bundle: RecoveryBundle) -> str:
    """Return the space that a bundle is imported into unless another one is named."""
    return f"bundle-{_name(bundle)[:16]}"


def import_bundle(
    engine: Engine,
    bundle: RecoveryBundle,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> Flow[Imported]:
    """Store a bundle in the space that an engine was opened for, which nothing has used yet.

    Args:
        engine: a database; its space is made.
        bundle: of a verified file.
        progress: is told how many pages were stored of how many.

    Raises:
        InvalidInput: the bundle has no content.
        SpaceTaken: the space is there already, and is not of this bundle.

    """
    if bundle.manifest.content != "complete":
        msg = "the bundle's content was left out, so what its rows refer to cannot be stored; --bundle FILE reads it"
        raise InvalidInput(msg)
    name, door = _name(bundle), engine.importer()
    said: dict[str, Any] = {
        "space": engine.space,
        "bundle": name,
        "manifest": bundle.manifest.model_copy(update={"entries": ()}).encoded(),
        "as_of_us": bundle.manifest.read_us,
        "actor": "import",
    }
    found = yield door.read("read_space", lambda: spaces.space(engine.space))
    new = found is None
    if found is None:
        secret = secrets.token_bytes(_SECRET_BYTES)
        yield door.commit(ImportBundle(command_id=f"{name}:0:{secret.hex()[:16]}", secret=secret, page=0, **said))
        found = yield door.read("read_space", lambda: spaces.space(engine.space))
        if found is None:
            raise InvariantBroken
    if found["bundle"] != name:
        msg = f"space {engine.space!r} is there already, and is not of this bundle; import it into another one"
        raise SpaceTaken(msg, space=engine.space, bundle=found["bundle"])
    if found["whole_us"] is None:
        secret = bytes(found["secret"])
        pages = list(_pages(_Moved(bundle, SpaceKeys(engine.space, secret), engine.owner)))
        for number, page in enumerate(pages, 1):
            command = ImportBundle(
                command_id=f"{name}:{number}",
                secret=secret,
                page=number,
                last=number == len(pages),
                rows=page.rows,
                owner=engine.owner,
                blobs=tuple(page.blobs),
                **said,
            )
            yield door.commit(command)
            progress(number, len(pages))
    return Imported(
        space=engine.space,
        bundle=name,
        run_id=bundle.manifest.run_id,
        thread_id=bundle.manifest.thread_id,
        as_of_us=bundle.manifest.read_us,
        redacted=bundle.manifest.redaction.redacted,
        rows=sum(len(rows) for rows in bundle.rows.values()),
        new=new,
    )


def _name(bundle: RecoveryBundle) -> str:
    return hashlib.sha256(bundle.manifest.encoded()).hexdigest()


@dataclass(slots=True)
class _Moved:
    """A bundle's rows and content under the secret of another space."""

    bundle: RecoveryBundle
    keys: SpaceKeys
    owner: str
    blobs: dict[bytes, Blob] = field(default_factory=dict)
    _done: dict[Piece, bytes] = field(default_factory=dict)

    def rows(self) -> Mapping[str, Sequence[dict[str, Any]]]:
        """Return the rows; the content that they refer to is in ``blobs`` behind that."""
        made = rewritten(self.bundle.rows, self._ref)
        for row in made["threads"]:
            row["thread_hash"] = self.keys.thread_hash(row["thread_id"])
        return made

    def _ref(self, ref: PayloadRef, _where: str) -> PayloadRef:
        if ref.address is not None:
            return PayloadRef(ref.type, ref.size, address=self._address(Piece(ref.address, SEGMENT)))
        if not ref.pieces:
            return ref
        return PayloadRef(ref.type, ref.size, pieces=tuple(map(self._piece, ref.pieces)))

    def _piece(self, piece: Piece) -> Piece:
        return piece if piece.depth == LITERAL else Piece(self._address(piece), piece.depth)

    def _address(self, piece: Piece) -> bytes:
        """Return the address of content here; a page names the addresses here too."""
        found = self._done.get(piece)
        if found is None:
            data = self.bundle.contents[piece.data]
            if piece.depth > SEGMENT:
                data = page_of(map(self._piece, pieces_of(data)))
            found = self._done[piece] = self.keys.address(self.owner, data)
            self.blobs[found] = Blob(found, len(data), pack(data))
        return found


@dataclass(slots=True)
class _Page:
    blobs: list[Blob] = field(default_factory=list)
    rows: dict[str, list[dict[str, Any]]] = field(default_factory=dict)


def _pages(moved: _Moved) -> Iterator[_Page]:
    """Give what is stored together; the same pages whenever the same bundle is imported under the same secret."""
    rows = moved.rows()
    page, size = _Page(), 0
    for blob in moved.blobs.values():
        page.blobs.append(blob)
        size += len(blob.content)
        if size >= _PAGE_BYTES or len(page.blobs) >= _PAGE_ROWS:
            yield page
            page, size = _Page(), 0
    count = len(page.blobs)
    for name, part in rows.items():
        for row in part:
            page.rows.setdefault(name, []).append(row)
            count += 1
            if count >= _PAGE_ROWS:
                yield page
                page, count = _Page(), 0
    yield page  # the run's own row is there always, so this is a page even when it is empty
