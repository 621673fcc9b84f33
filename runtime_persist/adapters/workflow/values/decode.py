"""Bytes to values. Nothing is imported, and nothing is called but the constructors of allowed classes."""

from __future__ import annotations

import datetime as dt
import pathlib
import sys
from collections import OrderedDict, defaultdict, deque
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

import ormsgpack
import pydantic_core
from langchain_core.messages.base import TextAccessor

from runtime_persist.adapters.workflow.values import build, codes, stock
from runtime_persist.adapters.workflow.values.objects import FACTORIES, MAPPINGS
from runtime_persist.adapters.workflow.values.registry import Policy, registered, untrusted
from runtime_persist.errors import CheckpointCorrupt, RuntimePersistError, UnknownFormat

if TYPE_CHECKING:
    from collections.abc import Callable

_BASIC: Final[dict[str, Callable[..., Any]]] = {
    "complex": complex,
    "Fraction": Fraction,
    "range": range,
    "PurePosixPath": pathlib.PurePosixPath,
    "PureWindowsPath": pathlib.PureWindowsPath,
    "TzInfo": pydantic_core.TzInfo,
    "TextAccessor": TextAccessor,
}


class Decoder:
    """Unpacks one value."""

    def __init__(self, policy: Policy) -> None:
        """Allow what ``policy`` allows."""
        self.policy = policy
        self._depth = 0
        self._error: RuntimePersistError | None = None

    def decode(self, data: bytes) -> Any:
        """Return the value of bytes.

        Raises:
            UntrustedType: it names a class that may not be used.
            IncompatibleClass: a class has changed, and there is no upgrade function that helps.
            CheckpointCorrupt, UnknownFormat: the bytes are no value.

        """
        try:
            return self.unpack(data)
        except RuntimePersistError:
            raise
        except Exception as error:
            raise CheckpointCorrupt(f"its bytes are no value: {type(error).__name__}") from error

    def unpack(self, data: bytes) -> Any:
        """Return the value of bytes inside the ones being decoded."""
        if self._depth > codes.DEPTH_READ_MAX:
            raise CheckpointCorrupt("its bytes are no value: objects are nested too deep")
        try:
            return ormsgpack.unpackb(data, ext_hook=self._hook, option=ormsgpack.OPT_NON_STR_KEYS)
        except ValueError as error:  # ormsgpack hides what the hook raised
            if self._error is not None:
                raise self._error from self._error.__cause__
            raise CheckpointCorrupt(f"its bytes are no value: {error}") from None

    def _hook(self, code: int, data: bytes) -> Any:
        self._depth += 1
        try:
            return self.made(code, data)
        except RuntimePersistError as error:
            self._error = self._error or error
            raise
        except RecursionError:
            self._error = CheckpointCorrupt("its bytes are no value: objects are nested too deep")
            raise
        except Exception as error:
            self._error = CheckpointCorrupt(f"its bytes are no value: {type(error).__name__} (extension code {code})")
            raise
        finally:
            self._depth -= 1

    def forget_error(self) -> None:
        """Take back the error of an object that another value stands for after all."""
        self._error = None

    def made(self, code: int, data: bytes) -> Any:
        """Return the value of an extension: its code, and the bytes inside it."""
        if code in stock.CODES:
            return stock.made(self.policy, code, self.unpack(data))
        return (_MADE.get(code) or _unknown(code))(self, data)


def _unknown(code: int) -> Callable[[Decoder, bytes], Any]:
    def refuse(_: Decoder, __: bytes) -> Any:
        raise UnknownFormat(f"it has extension code {code}, which this code does not know", extension=code)

    return refuse


def _mapping(to: Decoder, data: bytes) -> Any:
    kind, factory, flat = to.unpack(data)
    pairs = zip(flat[::2], flat[1::2], strict=True)
    if kind == "dict":
        return dict(pairs)
    if kind == "defaultdict":
        return defaultdict(None if factory is None else FACTORIES[factory], pairs)
    found = MAPPINGS[kind]()
    for key, value in pairs:
        dict.__setitem__(found, key, value) if not isinstance(found, OrderedDict) else found.__setitem__(key, value)
    return found


def _deque(to: Decoder, data: bytes) -> deque[Any]:
    longest, members = to.unpack(data)
    return deque(members, longest)


def _datetime(to: Decoder, data: bytes) -> dt.datetime:
    text, fold, zone = to.unpack(data)
    return dt.datetime.fromisoformat(text).replace(tzinfo=zone, fold=fold)


def _time(to: Decoder, data: bytes) -> dt.time:
    text, fold, zone = to.unpack(data)
    return dt.time.fromisoformat(text).replace(tzinfo=zone, fold=fold)


def _basic(to: Decoder, data: bytes) -> Any:
    kind, *arguments = to.unpack(data)
    return _BASIC[kind](*arguments)


def _numpy(to: Decoder, data: bytes) -> Any:
    described, shape, order, content, scalar = to.unpack(data)
    numpy: Any = sys.modules.get("numpy")
    if numpy is None:
        raise untrusted("numpy", "ndarray", "numpy is not imported in this process; import it first")
    array = numpy.frombuffer(content, dtype=numpy.lib.format.descr_to_dtype(described)).reshape(shape, order=order)
    return array[()] if scalar else array.copy(order)


def _registered(to: Decoder, data: bytes) -> Any:
    module, qualname, said = to.unpack(data)
    cls = to.policy.find(module, qualname)
    known = registered(cls) if isinstance(cls, type) else None
    if known is None or known.load is None:
        raise untrusted(module, qualname, "it was stored by a registered function; register_type it here too")
    try:
        return known.load(said)
    except Exception as error:  # noqa: BLE001 (the user's function)
        raise build.incompatible(module, qualname, f"its registered load raised {type(error).__name__}") from None


_MADE: Final[dict[int, Callable[[Decoder, bytes], Any]]] = {
    codes.TUPLE: lambda to, data: tuple(to.unpack(data)),
    codes.SET: lambda to, data: set(to.unpack(data)),
    codes.FROZENSET: lambda to, data: frozenset(to.unpack(data)),
    codes.DEQUE: _deque,
    codes.MAPPING: _mapping,
    codes.BIG_INT: lambda _, data: int.from_bytes(data, "little", signed=True),
    codes.TEXT: lambda _, data: data.decode("utf-8", "surrogatepass"),
    codes.BYTEARRAY: lambda _, data: bytearray(data),
    codes.DATETIME: _datetime,
    codes.TIME: _time,
    codes.ENUM: lambda to, data: build.enum(to.policy, *to.unpack(data)),
    codes.DATACLASS: lambda to, data: build.dataclass(to.policy, *to.unpack(data)),
    codes.MODEL: lambda to, data: build.model(to.policy, *to.unpack(data)),
    codes.NAMEDTUPLE: lambda to, data: build.namedtuple(to.policy, *to.unpack(data)),
    codes.BASIC: _basic,
    codes.NUMPY: _numpy,
    codes.REGISTERED: _registered,
}
