"""The tree of errors: each has a code of its own, all of them are public, and they survive a hand-over."""

import importlib
import pickle
import pkgutil
from collections import Counter

import pytest

from runtime_persist import errors
from runtime_persist.errors import RuntimePersistError

AREAS = [importlib.import_module(found.name) for found in pkgutil.iter_modules(errors.__path__, f"{errors.__name__}.")]
ALL = {
    name: kind
    for area in AREAS
    for name, kind in vars(area).items()
    if isinstance(kind, type) and issubclass(kind, RuntimePersistError) and kind.__module__ == area.__name__
}


def test_every_error_has_a_code_of_its_own():
    assert [name for name, kind in ALL.items() if "code" not in vars(kind)] == []
    assert [code for code, times in Counter(kind.code for kind in ALL.values()).items() if times > 1] == []


def test_every_error_is_public_where_it_is_and_in_the_package():
    assert {name: getattr(errors, name) for name in errors.__all__ if name != "Kind"} == ALL
    assert sorted(name for area in AREAS for name in area.__all__) == sorted(errors.__all__)
    assert len(set(errors.__all__)) == len(errors.__all__)


@pytest.mark.parametrize("kind", ALL.values(), ids=ALL.keys())
def test_an_error_is_handed_over_with_its_message_and_details(kind):
    error = pickle.loads(pickle.dumps(kind(epoch=3)))  # noqa: S301 (its own bytes)
    assert (type(error), error.message, error.details) == (kind, kind.__doc__.split("\n", 1)[0], {"epoch": 3})
