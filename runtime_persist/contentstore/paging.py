"""Pages: a long list of pieces is itself cut by content, so that a reference stays short and an old page is shared."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime_persist.model import limits
from runtime_persist.model.payload import LITERAL, SEGMENT, Piece, page_of

if TYPE_CHECKING:
    from collections.abc import Callable


def paged(pieces: list[Piece], store: Callable[[bytes], bytes]) -> list[Piece]:
    """Return a short list of pieces that stands for a long one.

    Like the elements of a list, pieces behind the last cut stay open: an append changes the reference, and now and
    then adds a page.

    Args:
        pieces: what a value is put together from.
        store: stores the content of a page and returns its address.

    """
    head: list[Piece] = []
    if pieces and pieces[0].depth == LITERAL:  # it holds the length of the list, which changes with every append
        head, pieces = pieces[:1], pieces[1:]
    tail: list[Piece] = []
    depth = SEGMENT
    while len(pieces) > limits.PAGED_PIECES_MAX:
        depth += 1
        short: list[Piece] = []
        first = 0
        for at, piece in enumerate(pieces):
            count = at + 1 - first
            if count < limits.PAGE_PIECES_MIN:
                continue
            cut = piece.depth > LITERAL and not piece.data[0] & limits.PAGE_CUT_MASK
            if cut or count >= limits.PAGE_PIECES_MAX:
                short.append(Piece(store(page_of(pieces[first : at + 1])), depth))
                first = at + 1
        pieces, tail = short, pieces[first:] + tail
    return head + pieces + tail
