"""Registries that workers of the tests are started with."""

import sys
import threading
from typing import Any

from tests.support.graphs import asks, chain, says


def hangs(_: Any) -> None:
    """A node that never returns."""
    sys.stderr.write("in node\n")
    threading.Event().wait()


registry = {"hello": chain({"node": says("hello")}), "asking": lambda: chain({"ask": asks("why?")})}
empty: dict[str, object] = {}
no_mapping = [1]
not_compiled = {"bad": 7}
hanging = {"hanging": chain({"hangs": hangs})}
