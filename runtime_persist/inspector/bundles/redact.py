"""Secrets in the values of a bundle: stars of the same length, so that all that stands around them stays as it is."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

import ormsgpack
from pydantic import SecretBytes, SecretStr

from runtime_persist.adapters.workflow.values import codes

_NAMES: Final = {cls.__qualname__ for cls in (SecretStr, SecretBytes)}
_NAMED: Final = re.compile(b"SecretStr|SecretBytes")
_LOOKED_INTO: Final = frozenset({codes.TYPE_TAG, "msgpack"})
_PLAIN: Final = frozenset({"null", "bytes", "bytearray"})
"""Types of values in which there is no object of a secret's class."""
_CLASS_AND_SECRET: Final = 3


@dataclass(slots=True)
class Redactor:
    """Takes secrets out of serialized values.

    Attributes:
        starred: values in which there were some.
        withheld: values that cannot be looked into.

    """

    starred: int = 0
    withheld: int = 0

    def redacted(self, kind: str, data: bytes) -> bytes | None:
        """Return a value's bytes with stars for its secrets (None: it is withheld).

        An encrypted value stays as it is. A value that only its own code can open (a pickle, say) is withheld.
        """
        if "+" in kind or kind in _PLAIN:
            return data
        if kind in _LOOKED_INTO:
            if _NAMED.search(data) is None:
                return data
            found = _Secrets(data)
            made = data
            for secret, stars in found.seen:
                made = made.replace(secret, stars)
            again = _Secrets(made)
            if not (found.failed or again.failed) and all(secret == stars for secret, stars in again.seen):
                self.starred += bool(found.seen)
                return made
        self.withheld += 1
        return None


class _Secrets:
    """Walks through extensions inside extensions, and notes those that hold a secret.

    Attributes:
        seen: the bytes of each secret with its class, and what takes their place.
        failed: something in it names such a class and cannot be understood.

    """

    def __init__(self, data: bytes) -> None:
        self.seen: list[tuple[bytes, bytes]] = []
        self.failed = False
        self._depth = 0
        try:
            self._unpack(data)
        except ValueError:
            self.failed = True

    def _unpack(self, data: bytes) -> Any:
        return ormsgpack.unpackb(data, ext_hook=self._hook, option=ormsgpack.OPT_NON_STR_KEYS)

    def _hook(self, code: int, data: bytes) -> Any:
        """Return something that may be a key of a dict; what is raised here would be hidden."""
        named = _NAMED.search(data) is not None
        if not named:
            return repr(data)
        self._depth += 1
        if self._depth > codes.DEPTH_READ_MAX:
            self.failed = True
            return repr(data)
        try:
            said = self._unpack(data)
        except ValueError:
            self.failed = True
            return repr(data)
        finally:
            self._depth -= 1
        if code == codes.STOCK_SINGLE and isinstance(said, list) and len(said) >= _CLASS_AND_SECRET:
            self._note(data, said)
        return repr(said)

    def _note(self, data: bytes, said: list[Any]) -> None:
        if said[1] not in _NAMES:
            return
        secret = said[2]
        if not isinstance(secret, (str, bytes)):
            self.failed = True
            return
        stars: Any = "*" * len(secret.encode()) if isinstance(secret, str) else b"*" * len(secret)
        made = ormsgpack.packb([*said[:2], stars, *said[3:]])
        if len(made) == len(data):
            self.seen.append((data, made))
        else:
            self.failed = True
