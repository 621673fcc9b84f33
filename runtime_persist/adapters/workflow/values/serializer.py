"""ValueSerializer: the saver's default serializer of values."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any, Final

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from runtime_persist.adapters.workflow.values.codes import TYPE_TAG
from runtime_persist.adapters.workflow.values.decode import Decoder
from runtime_persist.adapters.workflow.values.encode import Encoder
from runtime_persist.adapters.workflow.values.registry import Policy, untrusted
from runtime_persist.errors import CheckpointCorrupt, InvalidInput, UnknownFormat

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_STRICT: Final = ("imported", "registered")


class ValueSerializer(JsonPlusSerializer):
    """Values come back equal, of the same type, or are refused when they are stored.

    Loading makes values of built-in and registered types, of types a graph's schemas name, and (``strict="imported"``)
    of data classes whose module this process has imported. It imports nothing and never unpickles.
    """

    def __init__(self, *, strict: str = "imported") -> None:
        """Allow data classes of imported modules, or (``"registered"``) registered ones only."""
        if strict not in _STRICT:
            msg = f"strict must be one of {', '.join(_STRICT)}, not {strict!r}"
            raise InvalidInput(msg, strict=repr(strict))
        super().__init__(allowed_msgpack_modules=None)
        self._policy = Policy(strict)
        self._inputs = False

    @property
    def strict(self) -> str:
        """Return which classes loading may make: ``imported`` or ``registered``."""
        return self._policy.strict

    def __repr__(self) -> str:
        return f"{type(self).__name__}(strict={self._policy.strict!r})"

    def with_msgpack_allowlist(self, extra_allowlist: Iterable[tuple[str, ...] | type]) -> ValueSerializer:
        """Return a serializer that allows more classes: given as such, or by module and name."""
        given = list(extra_allowlist)
        names = {(name[0], name[1]) for name in given if not isinstance(name, type)}
        classes = {cls for cls in given if isinstance(cls, type)}
        old = self._policy
        if names <= old.names and classes <= set(old.classes.values()):
            return self
        made = type(self)(strict=old.strict)
        made._policy = Policy(old.strict, old.names | names, {*old.classes.values(), *classes}, bound=old.bound)  # noqa: SLF001 (a clone)
        return made

    def for_graph(self, classes: Iterable[type]) -> ValueSerializer:
        """Return this serializer for a graph whose schemas name these classes."""
        made = self.with_msgpack_allowlist(classes)
        policy = made._policy  # noqa: SLF001 (a clone)
        clone = copy.copy(made)
        clone._policy = Policy(policy.strict, policy.names, policy.classes.values(), bound=True)  # noqa: SLF001
        return clone

    def for_input(self) -> ValueSerializer:
        """Return this serializer for the input of a graph: an object of a class made at run time is kept as its fields.

        The graph's input schema makes the object of them again, as LangGraph does.
        """
        clone = copy.copy(self)
        clone._inputs = True  # noqa: SLF001 (a clone of itself)
        return clone

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """Return a value as type tag and bytes.

        Raises:
            UnsupportedValue: something in it would not come back equal.

        """
        if obj is None:
            return "null", b""
        if type(obj) is bytes:
            return "bytes", obj
        if type(obj) is bytearray:
            return "bytearray", bytes(obj)
        encoder = Encoder(self._policy, inputs=self._inputs)
        data = encoder.encode(obj)
        return TYPE_TAG if encoder.own else "msgpack", data

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Return the value of type tag and bytes, this serializer's or LangGraph's.

        Raises:
            UntrustedType: it names a class that may not be used, or needs one called (JSON constructor, pickle).
            IncompatibleClass: a class has changed, and there is no upgrade function that helps.
            CheckpointCorrupt, UnknownFormat: the bytes are no value.

        """
        kind, content = data
        if kind in (TYPE_TAG, "msgpack"):
            return Decoder(self._policy).decode(content)
        if kind == "null":
            return None
        if kind == "bytes":
            return content
        if kind == "bytearray":
            return bytearray(content)
        if kind == "json":
            return json_value(content, _plain)
        if kind == "pickle":
            raise untrusted("pickle", "?", "pickled values are never loaded")
        raise UnknownFormat(f"it has the type tag {kind!r}, which this serializer does not know", tag=kind)


def json_value(content: bytes, object_hook: Callable[[dict[str, Any]], Any]) -> Any:
    """Return the value of older, JSON bytes (raises CheckpointCorrupt)."""
    try:
        return json.loads(content, object_hook=object_hook)
    except (ValueError, RecursionError) as error:
        raise CheckpointCorrupt(f"its bytes are no value: {type(error).__name__}") from None


def _plain(found: dict[str, Any]) -> dict[str, Any]:
    if "lc" in found and "type" in found and "id" in found:
        names = found["id"]
        name = ".".join(map(str, names)) if isinstance(names, list) else "?"
        raise untrusted("json", name, "JSON constructors are never called")
    return found
