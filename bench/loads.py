"""What is stored: chats of messages of about 1 KB each, of prose that zstd makes about three times smaller."""

from __future__ import annotations

import itertools
import random
import uuid
from functools import cache

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.base import uuid6

KB = 1024
MB = 1024 * KB
_TEXT_CHARACTERS = 850  # a message of this much text is about 1 KB serialized
_VOCABULARY = 3_000
_LETTERS = "etaoinshrdlucmfwypvbgkjqxz"  # by how often English has them
_random = random.Random(11)
_WORDS = [
    "".join(_random.choices(_LETTERS, weights=range(len(_LETTERS), 0, -1), k=_random.randint(2, 9)))
    for _ in range(_VOCABULARY)
]
_WEIGHTS = [1 / rank for rank in range(2, _VOCABULARY + 2)]  # Zipf's law
_number = itertools.count(1)
_TEXTS = 2_048  # more than any chat here has messages: none compresses well because it repeats itself


def prose(characters: int, source: random.Random) -> str:
    """Return text with the frequencies of natural language."""
    words = source.choices(_WORDS, weights=_WEIGHTS, k=characters // 3)
    return " ".join(words)[:characters].ljust(characters, ".")


@cache
def texts() -> list[str]:
    """Return texts to make messages of."""
    return [prose(_TEXT_CHARACTERS, random.Random(seed)) for seed in range(_TEXTS)]


def message(characters: int = _TEXT_CHARACTERS):
    """Return a message that no other one is equal to."""
    number = next(_number)
    kind = HumanMessage if number % 2 else AIMessage
    return kind(f"{number:08d} {texts()[number % _TEXTS]}"[:characters], id=str(uuid.UUID(int=number)))


@cache
def _first_messages(size: int):
    return [message() for _ in range(max(1, size // KB))]


class Chat:
    """The puts of one thread: each drops the oldest message and appends one, so no two values are equal.

    Attributes:
        put: makes the arguments of the next ``put``.
        latest: the config of the newest checkpoint.

    """

    def __init__(self, saver, thread_id: str, size: int) -> None:
        self._saver = saver
        self._size = size
        self._thread = {"thread_id": thread_id, "checkpoint_ns": ""}
        self._messages = list(_first_messages(size))
        self._parent: str | None = None
        self._version = None
        self._step = 0

    @property
    def latest(self):
        return {"configurable": dict(self._thread)}

    def continue_from(self, checkpoint_id: str, version) -> None:
        """Go on after a checkpoint that is in the database already."""
        self._parent, self._version = checkpoint_id, version

    def put(self):
        self._step += 1
        self._messages = [*self._messages[1:], message()]
        self._version = version = self._saver.get_next_version(self._version, None)
        given = {**self._thread, "checkpoint_id": self._parent} if self._parent else dict(self._thread)
        self._parent = str(uuid6(clock_seq=self._step))
        checkpoint = {
            "v": 4,
            "ts": "2026-01-01T00:00:00.000000+00:00",
            "id": self._parent,
            "channel_values": {"messages": self._messages, "step": self._step},
            "channel_versions": {"__start__": version, "messages": version, "step": version},
            "versions_seen": {
                "__input__": {},
                "__start__": {"__start__": version},
                "node": {"branch:to:node": version},
            },
            "updated_channels": ["messages", "step"],
        }
        metadata = {"source": "loop", "step": self._step, "parents": {}}
        return {"configurable": given}, checkpoint, metadata, {"messages": version, "step": version}

    def writes(self, count: int):
        """Return the arguments of a ``put_writes`` to the newest checkpoint: together they have the chat's size."""
        each = self._size // count
        values = [
            [message(), *self._messages[1 : each // KB]] if each >= KB else [message(max(8, each - 170))]
            for _ in range(count)
        ]
        given = [(f"channel{place}" if place else "messages", value) for place, value in enumerate(values)]
        config = {"configurable": {**self._thread, "checkpoint_id": self._parent}}
        return config, given, str(uuid.UUID(int=next(_number))), "~__pregel_pull, node"
