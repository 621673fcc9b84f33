"""As much of the PostgreSQL wire protocol as a proxy needs to follow a conversation (protocol 3.0)."""

import asyncio
import struct
from dataclasses import dataclass, field

SSL_REQUEST = 80877103
GSS_REQUEST = 80877104
CANCEL_REQUEST = 80877102

# The server answers these with one ReadyForQuery each: they end an exchange.
ENDS_EXCHANGE = frozenset("SQF")
# After these the client may wait for an answer, so nothing before them may be kept back. Besides the ends of
# exchanges and Flush: copy data, done and fail, passwords, and the farewell.
MUST_GO_OUT = ENDS_EXCHANGE | frozenset("HdcfpX")
# A client that sends one of these waits for the answer: a round trip.
ROUND_TRIPS = frozenset("SHQ")
# The server waits for the client's copy data after these.
ASKS_FOR_DATA = frozenset("GW")


@dataclass(frozen=True, slots=True)
class Statement:
    """What a client had executed: the name of its prepared statement ("" for none) and its SQL."""

    name: str
    sql: str


@dataclass(frozen=True, slots=True)
class Message:
    """One message: its type letter and its bytes as they were on the wire, header included."""

    kind: str
    raw: bytes

    def words(self) -> list[str]:
        """The first two NUL-terminated strings of the body, or fewer."""
        parts = self.raw[5:].split(b"\0", 2)
        return [part.decode(errors="replace") for part in parts[:2]]


async def read_startup(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """The untyped first message of a client: its code (a protocol version or a request) and its bytes."""
    header = await reader.readexactly(8)
    length, code = struct.unpack("!II", header)
    return int(code), header + await reader.readexactly(length - 8)


async def read_message(reader: asyncio.StreamReader) -> Message:
    """The next typed message. Raises asyncio.IncompleteReadError at the end of the connection."""
    header = await reader.readexactly(5)
    (length,) = struct.unpack("!I", header[1:])
    return Message(chr(header[0]), header + await reader.readexactly(length - 4))


@dataclass(slots=True)
class StatementBook:
    """One connection's prepared statements, learned from what the client says."""

    _known: dict[str, str] = field(default_factory=dict)

    def read(self, message: Message) -> Statement | None:
        """Learn from a client message; the statement that it has executed, if it does that."""
        match message.kind:
            case "P":
                name, sql = message.words()
                self._known[name] = sql
            case "C" if message.raw[5:6] == b"S":
                self._known.pop(message.words()[0][1:], None)
            case "B":
                _portal, name = message.words()
                return Statement(name, self._known.get(name, ""))
            case "Q":
                return Statement("", message.words()[0])
            case _:
                pass
        return None
