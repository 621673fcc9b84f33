"""Encryption: a row without the mark of a cipher is not taken for plain text unless that was asked for."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from langgraph.checkpoint.serde.encrypted import EncryptedSerializer

from runtime_persist.errors import UntrustedType

if TYPE_CHECKING:
    from collections.abc import Iterable

_log = logging.getLogger(__name__)


class RequireCipher(EncryptedSerializer):
    """An EncryptedSerializer that refuses rows which are not encrypted. The saver puts it around a plain one."""

    def __init__(self, serde: EncryptedSerializer) -> None:
        """Encrypt and decrypt as ``serde`` does."""
        super().__init__(serde.cipher, serde.serde)
        self._given = serde

    def __repr__(self) -> str:
        return f"{type(self).__name__}({type(self._given).__name__})"

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """Return a value encrypted."""
        return self._given.dumps_typed(obj)

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Return the value of encrypted bytes.

        Raises:
            UntrustedType: they are not encrypted.

        """
        if "+" not in data[0]:
            self.plain(data[0])
        return self._given.loads_typed(data)

    def plain(self, kind: str) -> None:
        """Refuse a row that is not encrypted."""
        msg = (
            f"a stored value ({kind}) is not encrypted although encryption is on, so anybody may have written it; "
            "to read what was stored before, open with serde=AcceptPlainRows(…)"
        )
        raise UntrustedType(msg, type=kind, reason="not encrypted")

    def with_msgpack_allowlist(self, extra_allowlist: Iterable[tuple[str, ...] | type]) -> RequireCipher:
        """Return a serializer that allows more classes, if the one inside knows such a list."""
        inner = getattr(self.serde, "with_msgpack_allowlist", None)
        made = self.serde if inner is None else inner(extra_allowlist)
        if made is self.serde or type(self._given) is not EncryptedSerializer:
            return self
        return type(self)(EncryptedSerializer(self.cipher, made))


class AcceptPlainRows(RequireCipher):
    """For the time of a migration to encryption: rows that are not encrypted are loaded, counted and logged.

    Attributes:
        plain_rows: how many were loaded.

    """

    def __init__(self, serde: EncryptedSerializer) -> None:
        """Encrypt and decrypt as ``serde`` does."""
        super().__init__(serde)
        self.plain_rows = 0

    def plain(self, kind: str) -> None:
        """Count and log a row that is not encrypted."""
        self.plain_rows += 1
        _log.warning("loaded a stored value (%s) that is not encrypted (%d so far)", kind, self.plain_rows)
