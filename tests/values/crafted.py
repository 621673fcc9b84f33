"""Rows that somebody else wrote: what each says, and the error that loading it must be."""

import pickle

import ormsgpack
import pytest
from ormsgpack import Ext

from runtime_persist.adapters.workflow.values import codes
from runtime_persist.errors import CheckpointCorrupt, UnknownFormat, UntrustedType


def ext(code, *said):
    return "msgpack", ormsgpack.packb([Ext(code, ormsgpack.packb(list(said)))])


def nested(code, depth=10_000):
    data = b"\x90"
    for _ in range(depth):
        data = ormsgpack.packb(Ext(code, data))
    return data


class Pickled:
    def __reduce__(self):  # noqa: ANN204
        return __import__, ("pmod",)


CRAFTED = {
    "stock constructor, one argument": (ext(0, "pmod", "K", 1), UntrustedType),
    "stock constructor, arguments": (ext(1, "pmod", "K", [1]), UntrustedType),
    "stock constructor, keywords": (ext(2, "pmod", "K", {"a": 1}), UntrustedType),
    "stock method": (ext(3, "pmod", "K", 1, "run"), UntrustedType),
    "stock pydantic 1": (ext(4, "pmod", "K", {"a": 1}), UntrustedType),
    "stock pydantic 2": (ext(5, "pmod", "K", {"a": 1}, "model_validate_json"), UntrustedType),
    "a function of an imported module": (ext(0, "os", "system", "touch ran"), UntrustedType),
    "a class of an imported module": (ext(1, "subprocess", "Popen", [["touch", "ran"]]), UntrustedType),
    "a method of an allowed class": (ext(3, "datetime", "datetime", "x", "strptime"), UntrustedType),
    "a built-in function": (ext(0, "builtins", "eval", "1"), UntrustedType),
    "a lazy attribute": (ext(0, "langchain_core.messages", "trim_messages", "1"), UntrustedType),
    "own enum": (ext(codes.ENUM, "pmod", "K", "A", 1), UntrustedType),
    "own dataclass": (ext(codes.DATACLASS, "pmod", "K", "x", {"a": 1}, False), UntrustedType),
    "own model": (ext(codes.MODEL, "pmod", "K", "x", {"a": 1}, 1, None), UntrustedType),
    "own named tuple": (ext(codes.NAMEDTUPLE, "pmod", "K", "x", {"a": 1}), UntrustedType),
    "own registered": (ext(codes.REGISTERED, "pmod", "K", 1), UntrustedType),
    "JSON constructor": (("json", b'{"lc": 2, "type": "constructor", "id": ["pmod", "K"]}'), UntrustedType),
    "older JSON constructor": (("json", b'{"lc": 1, "type": "constructor", "id": ["pmod", "K"]}'), UntrustedType),
    "pickle": (("pickle", pickle.dumps(Pickled())), UntrustedType),
    "unknown tag": (("yaml", b"a: 1"), UnknownFormat),
    "unknown extension": (ext(99, 1), UnknownFormat),
    "truncated": (("msgpack", b"\x93\x01"), CheckpointCorrupt),
    "nothing": (("msgpack", b""), CheckpointCorrupt),
    "not msgpack": (("msgpack", b"\xc1"), CheckpointCorrupt),
    "not JSON": (("json", b"{"), CheckpointCorrupt),
    "truncated inside": (("msgpack", ormsgpack.packb(Ext(codes.TUPLE, b"\x93\x01"))), CheckpointCorrupt),
    "10,000 lists deep": (("msgpack", b"\x91" * 10_000 + b"\x90"), CheckpointCorrupt),
    "10,000 objects deep": (("msgpack", nested(codes.TUPLE)), CheckpointCorrupt),
    "10,000 stock objects deep": (("msgpack", nested(7)), CheckpointCorrupt),
    "10,000 JSON lists deep": (("json", b"[" * 10_000 + b"]" * 10_000), CheckpointCorrupt),
    "a mapping of nothing known": (ext(codes.MAPPING, "Nothing", None, []), CheckpointCorrupt),
    "a factory that is none": (ext(codes.MAPPING, "defaultdict", "eval", []), CheckpointCorrupt),
    "no class": (ext(0, 1, 2, 3), CheckpointCorrupt),
}


class Forger:
    """A serializer that writes what it is told to, so that the row has its right fingerprint."""

    def dumps_typed(self, value):
        if isinstance(value, str) and value in CRAFTED:
            return CRAFTED[value][0]
        return "msgpack", ormsgpack.packb(value, option=ormsgpack.OPT_NON_STR_KEYS)

    def loads_typed(self, data):
        return None if data in [crafted for crafted, _ in CRAFTED.values()] else ormsgpack.unpackb(data[1])


@pytest.fixture
def marker(tmp_path, monkeypatch):
    """A module that leaves a file when it is imported."""
    mark = tmp_path / "imported"
    (tmp_path / "pmod.py").write_text(f"open({str(mark)!r}, 'w').close()\nclass K:\n    pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    return mark
