"""Which classes values may be made of: built in, registered, of a graph's schemas, or data classes already imported.

Nothing is imported here to find a class, and no module's ``__getattr__`` is called.
"""

from __future__ import annotations

import ipaddress
import logging
import re
import sys
import weakref
import zoneinfo
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar, overload

import langchain_core.documents.base
import langchain_core.messages.ai
import langchain_core.messages.chat
import langchain_core.messages.function
import langchain_core.messages.human
import langchain_core.messages.modifier
import langchain_core.messages.system
import langchain_core.messages.tool
import langgraph.store.base
import langgraph.types
import pydantic.types
from langgraph.checkpoint.serde._msgpack import SAFE_MSGPACK_TYPES

from runtime_persist.adapters.workflow.values.shapes import kind_of
from runtime_persist.errors import InvalidInput, UntrustedType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_log = logging.getLogger(__name__)
C = TypeVar("C", bound=type)
Key = tuple[str, str]

_LOADED = (
    ipaddress, re, zoneinfo, langchain_core.documents.base, langchain_core.messages.ai, langchain_core.messages.chat,
    langchain_core.messages.function, langchain_core.messages.human, langchain_core.messages.modifier,
    langchain_core.messages.system, langchain_core.messages.tool, langgraph.store.base, langgraph.types,
    pydantic.types,
)  # fmt: skip
"""The modules of the built-in list are imported here, once, so that no load has to."""

_BASES: Final = (str, bytes, int, float, dict, list, tuple, set, frozenset)


def _found(module: str, qualname: str) -> Any:
    """Return what an already imported module holds under a name, None if there is nothing."""
    found: Any = sys.modules.get(module)
    for part in qualname.split("."):
        found = None if found is None else getattr(found, "__dict__", {}).get(part)
    return found


BUILT_IN: Final[dict[Key, Any]] = {
    (key[0], key[1]): made for key in SAFE_MSGPACK_TYPES if (made := _found(key[0], key[1])) is not None
} | {(cls.__module__, cls.__qualname__): cls for cls in (pydantic.types.SecretStr, pydantic.types.SecretBytes)}


@dataclass(frozen=True, slots=True)
class Registered:
    """A class a user registered, and how its values become storable ones and back (None: by its shape)."""

    cls: type
    dump: Callable[[Any], Any] | None
    load: Callable[[Any], Any] | None


_types: dict[Key, Registered] = {}
_upgrades: dict[Key, Callable[[dict[str, Any]], Any]] = {}
_made_here: weakref.WeakValueDictionary[Key, type] = weakref.WeakValueDictionary()
"""Data classes that were made inside functions and stored by this process: nobody else could find them."""
_known: list[weakref.WeakKeyDictionary[type, bool]] = []


@overload
def register_type(cls: C) -> C: ...
@overload
def register_type(
    cls: C,
    *,
    dump: Callable[[Any], Any],
    load: Callable[[Any], Any],
) -> C: ...
def register_type(
    cls: C,
    *,
    dump: Callable[[Any], Any] | None = None,
    load: Callable[[Any], Any] | None = None,
) -> C:
    """Allow values of a class to be stored and loaded; also usable as a decorator.

    A pydantic model, dataclass, Enum, NamedTuple or subclass of a built-in container, text or number needs nothing
    more. Any other class needs ``dump`` (returns something storable) and ``load`` (makes the value of it again).

    Raises:
        InvalidInput: not a class, or one that needs ``dump`` and ``load``.

    """
    given: object = cls
    if not isinstance(given, type):
        msg = f"register_type takes a class, not a {type(cls).__name__}"
        raise InvalidInput(msg)
    if (dump is None) != (load is None):
        msg = f"register_type({cls.__qualname__}) needs dump= and load= together"
        raise InvalidInput(msg)
    if dump is None and kind_of(cls) is None:
        base = next((base for base in _BASES if issubclass(cls, base)), None)
        if base is None or issubclass(cls, BaseException):
            msg = (
                f"{cls.__qualname__} is no pydantic model, dataclass, Enum or NamedTuple; say how it is stored: "
                "register_type(cls, dump=…, load=…)"
            )
            raise InvalidInput(msg)
        dump, load = base, cls
    _types[cls.__module__, cls.__qualname__] = Registered(cls, dump, load)
    for known in _known:
        known.clear()
    return cls


@overload
def register_upgrade(cls: type | str, function: Callable[[dict[str, Any]], Any]) -> None: ...
@overload
def register_upgrade(
    cls: type | str,
) -> Callable[[Callable[[dict[str, Any]], Any]], Callable[[dict[str, Any]], Any]]: ...
def register_upgrade(
    cls: type | str,
    function: Callable[[dict[str, Any]], Any] | None = None,
) -> Any:
    """Say how a value stored by an earlier version of a class becomes one of today; also usable as a decorator.

    ``function`` gets the stored fields by name when they are not today's fields, or a value cannot be built of them.
    A class that is gone is named by its text: ``register_upgrade("shop.models.Order", …)``. An Enum's function gets
    ``{"name": …, "value": …}``.
    """
    if function is None:

        def decorate(given: Callable[[dict[str, Any]], Any]) -> Callable[[dict[str, Any]], Any]:
            register_upgrade(cls, given)
            return given

        return decorate
    if isinstance(cls, type):
        _upgrades[cls.__module__, cls.__qualname__] = function
    elif "." in str(cls):
        _upgrades[_split(str(cls))] = function
    else:
        msg = "register_upgrade takes a class, or its full name as text: 'package.module.Class'"
        raise InvalidInput(msg)
    return None


def _split(name: str) -> Key:
    """Return module and class of a full name; a nested class is written ``module:Outer.Inner``."""
    module, _, qualname = name.partition(":") if ":" in name else name.rpartition(".")
    return module, qualname


def upgrade_of(module: str, qualname: str) -> Callable[[dict[str, Any]], Any] | None:
    """Return the upgrade function of a class."""
    return _upgrades.get((module, qualname))


def registered(cls: type) -> Registered | None:
    """Return how a registered class is stored."""
    found = _types.get((cls.__module__, cls.__qualname__))
    return found if found is not None and found.cls is cls else None


class Policy:
    """What one serializer allows."""

    def __init__(
        self, strict: str, names: Iterable[Key] = (), classes: Iterable[type] = (), *, bound: bool = False
    ) -> None:
        """Allow what is built in and registered, and more: names, classes, and data classes unless ``registered``.

        ``bound``: the classes of the graph's schemas are known, so a class made inside a function must be one of them.
        """
        self.strict = strict
        self.bound = bound
        self.names = frozenset(names)
        self.classes = {(cls.__module__, cls.__qualname__): cls for cls in classes}
        self._storable: weakref.WeakKeyDictionary[type, bool] = weakref.WeakKeyDictionary()
        _known.append(self._storable)

    def find(self, module: str, qualname: str) -> Any:
        """Return the class of that name.

        Raises:
            UntrustedType: it may not be used, or is not there.

        """
        key = (module, qualname)
        if key in BUILT_IN:
            return BUILT_IN[key]
        known = _types.get(key)
        if known is not None:
            return known.cls
        if key in self.classes:
            return self.classes[key]
        if key in _made_here and self.strict != "registered" and not self.bound:
            return _made_here[key]
        cls = _found(module, qualname)
        if isinstance(cls, type) and (cls.__module__, cls.__qualname__) == key and kind_of(cls) is not None:
            if self.strict != "registered" or key in self.names:
                return cls
            raise untrusted(module, qualname, "it is not registered: register_type(…), or bind a graph that names it")
        if module not in sys.modules:
            raise untrusted(
                module,
                qualname,
                "its module is not imported in this process; import it first (or, if it is gone: register_upgrade)",
            )
        if cls is None:
            raise untrusted(
                module, qualname, "its module has no such class (now); register_upgrade makes another of it"
            )
        raise untrusted(module, qualname, "it is no data class; register_type allows it")

    def knows(self, cls: type) -> bool:
        """Return whether a class was given to this policy, or registered."""
        return self.classes.get((cls.__module__, cls.__qualname__)) is cls or registered(cls) is not None

    def storable(self, cls: type) -> bool:
        """Return whether a value of this class could be loaded again.

        Without a graph's schemas nobody can tell whether a class made inside a function will be there next time: it
        is stored, loaded again in this process, and logged once.
        """
        if is_local(cls) and not self.knows(cls) and self.strict != "registered" and not self.bound:
            if _made_here.get((cls.__module__, cls.__qualname__)) is not cls:
                _made_here[cls.__module__, cls.__qualname__] = cls
                _log.warning(
                    "a stored %s.%s can only be loaded by this process: its class is made inside a function; move it "
                    "to its module, register_type it, or bind a graph whose schema names it",
                    cls.__module__,
                    cls.__qualname__,
                )
            return True
        known = self._storable.get(cls)
        if known is None:
            try:
                known = self.find(cls.__module__, cls.__qualname__) is cls
            except UntrustedType:
                known = False
            self._storable[cls] = known
        return known


def full_name(module: str, name: str) -> str:
    """Return where in an imported module a class of that name is: LangGraph does not say so for a nested class."""
    if (module, name) in BUILT_IN or _found(module, name) is not None:
        return name
    waiting = [one for one in _vars(sys.modules.get(module)) if isinstance(one, type) and one.__module__ == module]
    found: set[str] = set()
    seen: set[type] = set()
    while waiting:
        cls = waiting.pop()
        if cls in seen:
            continue
        seen.add(cls)
        if cls.__name__ == name:
            found.add(cls.__qualname__)
        inner = (one for one in _vars(cls) if isinstance(one, type) and one.__module__ == module)
        waiting += [one for one in inner if one.__qualname__.startswith(f"{cls.__qualname__}.")]
    return found.pop() if len(found) == 1 else name


def _vars(holder: Any) -> list[Any]:
    return list(getattr(holder, "__dict__", {}).values())


def is_local(cls: type) -> bool:
    """Return whether a class was made inside a function."""
    return "<locals>" in cls.__qualname__


def untrusted(module: str, qualname: str, reason: str) -> UntrustedType:
    """Return the error about a class."""
    name = f"{module}.{qualname}"
    return UntrustedType(f"a stored {name} was not loaded: {reason}", type=name, reason=reason)
