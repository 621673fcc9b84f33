"""How many bytes of content values are put together from, and how many of them they share."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from runtime_persist.contentstore import unpack
from runtime_persist.model.payload import LITERAL, SEGMENT, pieces_of
from runtime_persist.queries import checkpoints as checkpoint_queries
from runtime_persist.queries import content_sizes as queries

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from runtime_persist.engine import Engine, Flow
    from runtime_persist.model.payload import PayloadRef, Piece

_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Content:
    """Sizes of content by address.

    Attributes:
        sizes: bytes as given, and as stored; content that is missing has none.
        pages: what pages name.
        compressed: whether the second size is of compressed content.

    """

    sizes: Mapping[bytes, tuple[int, int]]
    pages: Mapping[bytes, Iterable[Piece]]
    compressed: bool = True

    def of(self, ref: PayloadRef, seen: set[PayloadRef | bytes]) -> tuple[int, int]:
        """Return the bytes of a value that are not in ``seen`` yet, as given and as stored; they are from now on."""
        if ref in seen:
            return 0, 0
        seen.add(ref)
        if ref.inline is not None:
            return len(ref.inline), len(ref.inline)
        literals = sum(len(piece.data) for piece in ref.pieces if piece.depth == LITERAL)
        given, stored = literals, literals
        queue = list(ref.stored())
        while queue:
            piece = queue.pop()
            if piece.data in seen:
                continue
            seen.add(piece.data)
            size, packed = self.sizes.get(piece.data, (0, 0))
            below = self.pages.get(piece.data, ()) if piece.depth > SEGMENT else ()
            given += sum(len(one.data) for one in below if one.depth == LITERAL) if piece.depth > SEGMENT else size
            stored += packed
            queue += [one for one in below if one.depth >= SEGMENT]
        return given, stored


def load_content_sizes(engine: Engine, named: Collection[Piece]) -> Flow[Content]:
    """Read the sizes of all content that some pieces stand for; of the content itself only pages are read."""
    sizes: dict[bytes, tuple[int, int]] = {}
    pages: dict[bytes, list[Piece]] = {}
    queue = sorted(named)
    done: set[bytes] = set()
    while queue:
        asked = {piece.data: piece for piece in queue[:_AT_ONCE]}
        queue = queue[_AT_ONCE:]
        done |= asked.keys()
        found: dict[bytes, tuple[int, int]] = yield engine.coordinator.read(
            "read_content_sizes", partial(queries.sizes, engine.space, engine.owner, list(asked))
        )
        sizes |= found
        above = [address for address, piece in asked.items() if piece.depth > SEGMENT]
        if above:
            stored: dict[bytes, bytes] = yield engine.coordinator.read(
                "read_content", partial(checkpoint_queries.stored, engine.space, engine.owner, above)
            )
            for address, data in stored.items():
                pages[address] = pieces_of(unpack(data))
                queue += [one for one in pages[address] if one.depth >= SEGMENT and one.data not in done]
    return Content(sizes, pages)


def sizes_of(contents: Mapping[bytes, bytes], named: Collection[Piece]) -> Content:
    """Return the sizes of content that came out of a bundle's file."""
    pages: dict[bytes, list[Piece]] = {}
    queue = [piece for piece in named if piece.depth > SEGMENT]
    while queue:
        piece = queue.pop()
        if piece.data not in pages and piece.data in contents:
            pages[piece.data] = pieces_of(contents[piece.data])
            queue += [one for one in pages[piece.data] if one.depth > SEGMENT]
    return Content({one: (len(data), len(data)) for one, data in contents.items()}, pages, compressed=False)
