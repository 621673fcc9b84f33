"""What every error is: a code, a kind, a message and details."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

__all__ = [
    "Kind",
    "RuntimePersistError",
]

Kind = Literal["retry", "conflict", "fenced", "invalid", "corrupt", "unknown", "failed", "bug"]


class RuntimePersistError(RuntimeError):
    """Something went wrong in runtime_persist."""

    code: ClassVar[str] = "RUNTIME_PERSIST"
    kind: ClassVar[Kind] = "bug"

    def __init__(self, message: str = "", **details: Any) -> None:
        """Keep ``details`` (ids, epochs, names) beside the message; without a message the docstring is used."""
        self.message = message or (type(self).__doc__ or "").strip().split("\n", 1)[0]
        self.details = details
        super().__init__(self.message)

    def __str__(self) -> str:
        """Return the code and the message, as logs and terminals show it."""
        return f"[{self.code}] {self.message}"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle with message and details (multiprocessing hands errors over)."""
        return _rebuild, (type(self), self.message, self.details)


def _rebuild(cls: type[RuntimePersistError], message: str, details: dict[str, Any]) -> RuntimePersistError:
    return cls(message, **details)
