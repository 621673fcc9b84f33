"""Values of every kind, and what "the same" means."""

import collections
import dataclasses
import datetime as dt
import decimal
import enum
import fractions
import ipaddress
import math
import pathlib
import re
import uuid
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, RemoveMessage, ToolMessage
from langgraph.types import Command, Interrupt, Send
from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, SecretBytes, SecretStr, TypeAdapter


class Color(enum.Enum):
    RED = "r"
    BOTH = (1, 2)


class Word(enum.StrEnum):
    A = "a"


class Text(str, enum.Enum):  # noqa: UP042 (both ways to write it)
    A = "a"


class Number(enum.IntEnum):
    ONE = 1


class Rights(enum.Flag):
    READ = 1
    WRITE = 2


class Point(NamedTuple):
    x: int
    y: Any = None


class Order(BaseModel):
    class State(enum.Enum):
        OPEN = "open"

    state: State = State.OPEN
    lines: list[Any] = Field(default_factory=list)
    hidden: Any = Field(default=None, exclude=True)
    _cached: int = PrivateAttr(default=3)


class Loose(BaseModel):
    model_config = ConfigDict(extra="allow")
    a: int = 0


class Renamed(BaseModel):
    size: int = Field(alias="Size")


@dataclasses.dataclass
class Plain:
    a: Any
    b: Any = None


@dataclasses.dataclass(frozen=True, slots=True)
class Frozen:
    a: Any


@dataclasses.dataclass
class Derived:
    a: int
    double: int = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        self.double = self.a * 2
        self.beside = self.a * 3


BERLIN = ZoneInfo("Europe/Berlin")
AGAIN = dt.datetime(2024, 10, 27, 2, 30, fold=1, tzinfo=BERLIN)

VALUES: dict[str, Any] = {
    "none": None,
    "plain data": {"a": [1, -1, 2.5, True, None, "text", b"bytes", {"b": []}]},
    "nan": [math.nan],
    "infinities and -0.0": [math.inf, -math.inf, -0.0],
    "NUL": "a\0b",
    "cut emoji": "a\ud800b",
    "cut emoji deep and as key": {"a": [{"b\ud800": ["x\udfff"]}]},
    "cut emoji in a message": HumanMessage("a\ud800b", id="1"),
    "ints": [2**63 - 1, -(2**63), 2**64 - 1, 2**64, 2**70, -(2**80), 10**5000],
    "dict keys": {1: 1, None: 2, 1.5: 3, b"b": 4, "s": 5, (1, "x"): 6, 2**70: 7, frozenset({1}): 8},
    "dict keys that are objects": {Color.RED: 1, Word.A: 2, Number.ONE: 3, dt.date(2020, 1, 1): 4, Point(1): 5},
    "int keys over objects": {1: {"a": Plain(1)}, 2: {"b": (1,)}},
    "bytes": b"\0\xff",
    "bytearray": bytearray(b"x"),
    "bytearray deep": {"a": [bytearray(b"x"), b"x"]},
    "tuple": (1, (2, [3, (4,)]), ()),
    "set": {1, 2},
    "set of tuples": {(1, 2), (3, (4, 5))},
    "frozenset": frozenset({"a"}),
    "deque": collections.deque([1, 2]),
    "deque with maxlen": collections.deque([1, 2], maxlen=3),
    "OrderedDict": collections.OrderedDict([("b", 1), ("a", (2,))]),
    "defaultdict": collections.defaultdict(list, {"a": [1]}),
    "defaultdict without factory": collections.defaultdict(None, {1: 2}),
    "Counter": collections.Counter("aab"),
    "Enum": [Color.RED, Color.BOTH],
    "str and int Enums": [Word.A, Text.A, Number.ONE],
    "Flags": [Rights.READ, Rights.READ | Rights.WRITE, Rights(0)],
    "nested Enum": Order.State.OPEN,
    "NamedTuple": Point(1, (2,)),
    "dataclass": Plain((1,), {Color.RED}),
    "frozen dataclass with slots": Frozen(Plain(1)),
    "dataclass with __post_init__": Derived(2),
    "model": Order(lines=[Order(), Plain(1), (1,)], hidden={1}),
    "model with extra fields": Loose(a=1, b=(2,)),
    "model with an alias": Renamed(Size=3),
    "model made without validation": Order.model_construct(lines=[1]),
    "Fraction, complex, range": [fractions.Fraction(1, 3), 1 + 2j, range(1, 9, 2)],
    "Decimal and UUID": [decimal.Decimal("1.10"), uuid.UUID(int=5)],
    "paths": [pathlib.Path("/a/b"), pathlib.PurePosixPath("a"), pathlib.PureWindowsPath("c:/x")],
    "pattern": re.compile("a+", re.IGNORECASE),
    "addresses": [ipaddress.ip_address("::1"), ipaddress.ip_network("10.0.0.0/8"), ipaddress.ip_interface("1.2.3.4/8")],
    "naive and UTC datetime": [dt.datetime(2024, 1, 2, 3, 4, 5, 6), dt.datetime(2024, 1, 2, tzinfo=dt.UTC)],  # noqa: DTZ001
    "datetime with zone and fold": AGAIN,
    "datetime with a named offset": dt.datetime(2024, 1, 2, tzinfo=dt.timezone(dt.timedelta(hours=2), "CEST")),
    "datetime made by pydantic": TypeAdapter(dt.datetime).validate_python("2024-01-02T03:04:05+02:00"),
    "time with zone and fold": dt.time(2, 30, tzinfo=BERLIN, fold=1),
    "date, timedelta, zones": [dt.date(2020, 1, 1), dt.timedelta(-1, 2, 3), BERLIN, dt.UTC],
    "messages": [HumanMessage("hi", id="1"), AIMessage("x", tool_calls=[{"name": "t", "args": {}, "id": "1"}])],
    "message chunk and removal": [AIMessageChunk("z"), RemoveMessage(id="1")],
    "text of a message": HumanMessage("hi").text,
    "tool artifact": ToolMessage("x", tool_call_id="1", artifact=Plain((1,))),
    "document": Document("text", metadata={"a": (1,)}),
    "Send, Command, Interrupt": [Send("n", {"o": Plain(1)}), Command(goto="x", update={"a": (1,)}), Interrupt((1,))],
    "secrets": [SecretStr("s"), SecretBytes(b"s")],
    "arrays": [np.arange(6).reshape(2, 3), np.asfortranarray(np.ones((2, 3))), np.arange(6)[::2]],
    "structured array": np.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f8")]),
    "numpy scalars": [np.float64(1.5), np.int32(3), np.datetime64("2020-01-01"), np.str_("x")],
}


def same(found: Any, stored: Any) -> bool:
    """Return whether a value came back: of the same type, equal, and the same to the eye, in all its parts."""
    if type(found) is not type(stored):
        return False
    if isinstance(stored, (list, tuple)):
        return len(found) == len(stored) and all(map(same, found, stored))
    if isinstance(stored, dict):
        return all(same(a, b) and same(found[a], stored[b]) for a, b in zip(found, stored, strict=True)) and vars_like(
            found
        ) == vars_like(stored)
    if isinstance(stored, np.ndarray):
        return bool(found.dtype == stored.dtype and found.shape == stored.shape and (found == stored).all())
    if isinstance(stored, float) and math.isnan(stored):
        return math.isnan(found)
    return bool(found == stored) and (isinstance(stored, int) or repr(found) == repr(stored))


def vars_like(found: Any) -> Any:
    return getattr(found, "default_factory", None)
