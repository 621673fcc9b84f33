"""What must not be stored or shown in clear: values become keyed hashes, so requests can still be compared."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, SecretBytes, SecretStr

from runtime_persist.model.text import SHOWN_INSTEAD

if TYPE_CHECKING:
    from collections.abc import Iterable

_SCRUBBED_CHARS_MIN = 4
_SEQUENCES = (list, tuple, set, frozenset)


class Hider:
    """Replaces values by keyed hashes, and remembers their texts to take them out of what errors say.

    Attributes:
        texts: texts of the values that were replaced, the longest first.

    """

    def __init__(self, names: Iterable[str], hashed: Callable[[Any], str]) -> None:
        """Hide what stands under ``names``, and secrets everywhere; ``hashed`` gives the hash of a value."""
        self._names = frozenset(names)
        self._hashed = hashed
        self._texts: set[str] = set()

    @property
    def texts(self) -> tuple[str, ...]:
        """Return what :func:`scrubbed` takes out of a text."""
        return tuple(sorted(self._texts, key=len, reverse=True))

    def arguments(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return arguments without what must not be seen."""
        return {name: self._named(name, value) for name, value in arguments.items()}

    def _named(self, name: Any, value: Any) -> Any:
        return self._hidden(_clear(value)) if name in self._names else self._shown(value)

    def _hidden(self, value: Any) -> str:
        self._remember(value)
        return f"hidden:{self._hashed(value)}"

    def _shown(self, value: Any) -> Any:
        if isinstance(value, SecretStr | SecretBytes):
            return self._hidden(value.get_secret_value())
        if isinstance(value, Mapping):
            made = {name: self._named(name, found) for name, found in value.items()}
            return value if all(made[name] is value[name] for name in made) else made
        if type(value) in _SEQUENCES:
            parts = [self._shown(part) for part in value]
            return value if all(made is part for made, part in zip(parts, value, strict=True)) else type(value)(parts)
        fields = _fields(value)
        if fields is not None:
            seen = {name: self._named(name, found) for name, found in fields.items()}
            return value if all(seen[name] is fields[name] for name in seen) else seen
        return value

    def _remember(self, value: Any) -> None:
        if isinstance(value, Mapping):
            self._remember(list(value.values()))
        elif isinstance(value, _SEQUENCES):
            for part in value:
                self._remember(part)
        elif isinstance(value, bytes):
            self._remember(value.decode("utf-8", "replace"))
        elif isinstance(value, str | int) and len(str(value)) >= _SCRUBBED_CHARS_MIN:
            self._texts.add(str(value))


def _fields(value: Any) -> dict[str, Any] | None:
    """Return the fields of a model or dataclass, None of anything else."""
    if isinstance(value, BaseModel):
        return {name: getattr(value, name) for name in type(value).model_fields}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return None


def _clear(value: Any) -> Any:
    """Return a value with the secrets in it in clear, to be hashed as one."""
    if isinstance(value, SecretStr | SecretBytes):
        return value.get_secret_value()
    if isinstance(value, Mapping):
        return {name: _clear(found) for name, found in value.items()}
    if type(value) in _SEQUENCES:
        return type(value)(_clear(part) for part in value)
    fields = _fields(value)
    return value if fields is None else _clear(fields)


def scrubbed(text: str, texts: Iterable[str]) -> str:
    """Return a text without the hidden values in it."""
    for found in texts:
        text = text.replace(found, SHOWN_INSTEAD)
    return text
