"""Code that changed since a value was stored: a registered function upgrades it, else it is an error (G4)."""

import pytest

FIRST = """
import dataclasses, enum, typing
from pydantic import BaseModel
class Model(BaseModel):
    a: int
@dataclasses.dataclass
class Data:
    a: int
class Kind(enum.Enum):
    RED = "r"
class Pair(typing.NamedTuple):
    a: int
class Nested(BaseModel):
    inner: typing.Any
VALUES = {"Model": Model(a=1), "Data": Data(1), "Kind": Kind.RED, "Pair": Pair(1), "Nested": Nested(inner=[Data(1)])}
"""
SECOND = """
import dataclasses, enum, typing
from pydantic import BaseModel
class Model(BaseModel):
    a: int
    b: int
@dataclasses.dataclass
class Data:
    a: int
    b: int
class Kind(enum.Enum):
    RED = "changed"
class Pair(typing.NamedTuple):
    a: int
    b: int
class Nested(BaseModel):
    inner: typing.Any
def register(upgrade):
    upgrade(Model, lambda old: Model(a=old["a"], b=2))
    upgrade(Data, lambda old: Data(old["a"], 2))
    upgrade(Kind, lambda old: Kind[old["name"]])
    upgrade(Pair)(lambda old: Pair(old["a"], 2))
"""
GONE = """
def register(upgrade):
    for name in ("Model", "Data", "Pair", "Kind"):
        upgrade("shop." + name, lambda old, name=name: (name, old))
    upgrade("shop.Nested", lambda old: old)
"""
DEFAULT = SECOND.replace("b: int\n", "b: int = 5\n")
BROKEN = SECOND.replace('Model(a=old["a"], b=2)', "None").replace('Data(old["a"], 2)', "1 / 0")
NAMES = ["Model", "Data", "Kind", "Pair", "Nested"]


@pytest.fixture
def versions(tmp_path):
    """Folders with the shop as it was and as it became."""
    sources = {"first": FIRST, "second": SECOND, "gone": GONE, "default": DEFAULT, "broken": BROKEN}
    for name, source in sources.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "shop.py").write_text(source)
    return {name: str(tmp_path / name) for name in sources}


@pytest.fixture
def comes_back(shared_url, fork, versions):
    """Values are stored by one process, and loaded by another with another version of the shop."""
    from tests.values import programs

    def comes(version, **options):
        fork(programs.stores, shared_url, versions["first"]).result()
        return fork(programs.loads, shared_url, NAMES, versions.get(version), **options).result()

    return comes


def test_classes_that_did_not_change_come_back(comes_back):
    assert comes_back("first") == {
        "Model": "Model(a=1)",
        "Data": "Data(a=1)",
        "Kind": "<Kind.RED: 'r'>",
        "Pair": "Pair(a=1)",
        "Nested": "Nested(inner=[Data(a=1)])",
    }


@pytest.mark.parametrize("version", [None, "gone"], ids=["module", "class"])
def test_a_class_that_is_gone_is_an_error_that_names_it_with_channel_and_checkpoint(comes_back, version):
    for name, (code, message, channel, checkpoint_id) in comes_back(version).items():
        assert code == "UNTRUSTED_TYPE"
        assert f"shop.{name}" in message or (name == "Nested" and "shop.Data" in message)
        assert channel == "value"
        assert checkpoint_id in message


def test_a_class_with_a_new_required_field_is_an_error_that_names_it(comes_back):
    for name, (code, message, channel, checkpoint_id) in comes_back("second").items():
        assert code == "INCOMPATIBLE_CLASS"
        assert f"shop.{name if name != 'Nested' else 'Data'}" in message
        assert "register_upgrade" in message
        assert channel == "value"
        assert checkpoint_id in message


def test_a_registered_upgrade_function_gets_the_stored_fields(comes_back):
    assert comes_back("second", upgrades=True) == {
        "Model": "Model(a=1, b=2)",
        "Data": "Data(a=1, b=2)",
        "Kind": "<Kind.RED: 'changed'>",
        "Pair": "Pair(a=1, b=2)",
        "Nested": "Nested(inner=[Data(a=1, b=2)])",
    }


def test_an_upgrade_function_may_name_a_class_that_is_gone(comes_back):
    assert comes_back("gone", upgrades=True) == {
        "Model": "('Model', {'a': 1})",
        "Data": "('Data', {'a': 1})",
        "Kind": "('Kind', {'name': 'RED', 'value': 'r'})",
        "Pair": "('Pair', {'a': 1})",
        "Nested": "{'inner': [('Data', {'a': 1})]}",
    }


def test_a_new_field_with_a_default_needs_no_upgrade_function(comes_back):
    found = comes_back("default")
    assert found["Model"] == "Model(a=1, b=5)"
    assert found["Data"] == "Data(a=1, b=5)"
    assert found["Pair"] == "Pair(a=1, b=5)"


def test_an_upgrade_function_that_fails_is_an_error_that_names_the_class(comes_back):
    found = comes_back("broken", upgrades=True)
    assert found["Model"][0] == found["Data"][0] == "INCOMPATIBLE_CLASS"
    assert "returned a NoneType" in found["Model"][1]
    assert "raised ZeroDivisionError" in found["Data"][1]
