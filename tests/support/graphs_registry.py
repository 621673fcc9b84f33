"""Registries that workers of the tests are started with."""

from tests.support.graphs import asks, chain, says

registry = {"hello": chain({"node": says("hello")}), "asking": lambda: chain({"ask": asks("why?")})}
empty: dict[str, object] = {}
no_mapping = [1]
not_compiled = {"bad": 7}
