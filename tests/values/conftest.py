"""The fixtures of this suite."""

import pytest

from runtime_persist.adapters.workflow.values import registry
from tests.support.plugin import *  # noqa: F403
from tests.values.crafted import marker  # noqa: F401


@pytest.fixture(autouse=True)
def registered():
    """What a test registers is gone after it."""
    types, upgrades = dict(registry._types), dict(registry._upgrades)
    yield
    registry._types.clear()
    registry._types.update(types)
    registry._upgrades.clear()
    registry._upgrades.update(upgrades)
    for known in registry._known:
        known.clear()
