"""The extension codes of stored values. 0–7 are LangGraph's; the others are this package's and never change."""

from __future__ import annotations

from typing import Final

TYPE_TAG: Final = "msgpack-rp"
"""Type tag of bytes that hold codes of this package; LangGraph's own serializer refuses it instead of losing values."""

STOCK_SINGLE: Final = 0
STOCK_POSITIONAL: Final = 1
STOCK_KEYWORDS: Final = 2
STOCK_METHOD: Final = 3
STOCK_PYDANTIC_1: Final = 4
STOCK_PYDANTIC_2: Final = 5
STOCK_NUMPY: Final = 6
STOCK_DELTA: Final = 7

TUPLE: Final = 20
SET: Final = 21
FROZENSET: Final = 22
DEQUE: Final = 23
MAPPING: Final = 24
BIG_INT: Final = 25
TEXT: Final = 26
BYTEARRAY: Final = 27
DATETIME: Final = 28
TIME: Final = 29
ENUM: Final = 30
DATACLASS: Final = 31
MODEL: Final = 32
NAMEDTUPLE: Final = 33
BASIC: Final = 34
NUMPY: Final = 35
REGISTERED: Final = 36

DEPTH_MAX: Final = 150
"""Objects inside objects; plain lists and dicts have msgpack's own bound."""

DEPTH_READ_MAX: Final = 400
"""As DEPTH_MAX, for data that LangGraph's own serializer wrote."""
