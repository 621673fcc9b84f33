"""What differs between two bundles: rows by their key, column by column, and channels by the values they hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

from pydantic import BaseModel, ConfigDict

from runtime_persist.adapters.workflow import encoding
from runtime_persist.queries.bundles import PARTS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from runtime_persist.inspector.bundles.recovery import RecoveryBundle
    from runtime_persist.plan import Row

_SHOWN_CHARS: Final = 200


class Difference(BaseModel):
    """One row, or one column of it, that is not in both bundles alike.

    Attributes:
        part: the table.
        key: the row.
        what: ``added``: only the second has it; ``removed``: only the first; ``changed``.
        column: which one changed; ``channel NAME`` of a checkpoint (None: the whole row).
        before: what the first says, as text.
        after: what the second says.

    """

    model_config = ConfigDict(frozen=True)

    part: str
    key: str
    what: Literal["added", "removed", "changed"]
    column: str | None = None
    before: str | None = None
    after: str | None = None


def differences(first: RecoveryBundle, second: RecoveryBundle) -> Iterator[Difference]:
    """Give what differs, in the order of the parts and their rows."""
    for part in PARTS:
        key = [column.name for column in part.key]
        before = {tuple(row[name] for name in key): row for row in first.rows[part.name]}
        after = {tuple(row[name] for name in key): row for row in second.rows[part.name]}
        for place in sorted(before.keys() | after.keys()):
            shown = " ".join(str(one) for one in place if one != "")
            if place not in after:
                yield Difference(part=part.name, key=shown, what="removed")
            elif place not in before:
                yield Difference(part=part.name, key=shown, what="added")
            else:
                for column, one, other in _columns(part.name, before[place], after[place]):
                    yield Difference(
                        part=part.name, key=shown, what="changed", column=column, before=_text(one), after=_text(other)
                    )


def _columns(part: str, before: Row, after: Row) -> Iterator[tuple[str, Any, Any]]:
    for column, one in before.items():
        other = after[column]
        if one == other:
            continue
        if part == "checkpoints" and column == "body":
            yield from _channels(encoding.refs_of(one), encoding.refs_of(other))
        else:
            yield column, one, other


def _channels(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    for channel in sorted(before.keys() | after.keys()):
        one, other = before.get(channel), after.get(channel)
        if one != other:
            yield f"channel {channel}", _sized(one), _sized(other)


def _sized(ref: Any) -> str | None:
    return None if ref is None else f"{ref.type}, {ref.size:,} bytes"


def _text(value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, (bytes, memoryview)):
        return f"{len(value):,} bytes"
    text = str(value)
    return text if len(text) <= _SHOWN_CHARS else text[: _SHOWN_CHARS - 1] + "…"
