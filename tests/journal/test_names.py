"""Names and keys are looked up: what is too long for an index of either database is refused before the call."""

import random
import string

import pytest

from runtime_persist import operation, step
from runtime_persist.adapters.middleware import Hook
from runtime_persist.errors import InvalidInput
from runtime_persist.model import limits
from tests.support.graphs import chain, config

LETTERS = string.ascii_letters + string.digits


def words(size):
    """A text that no database compresses."""
    return "".join(random.Random(size).choices(LETTERS, k=size))


LONG, TOO_LONG = words(limits.NAME_BYTES_MAX), words(limits.NAME_BYTES_MAX + 1)


@pytest.mark.parametrize("name", [TOO_LONG, "\u00fc" * (limits.NAME_BYTES_MAX // 2 + 1), "", "a\0b", 5])
def test_a_name_that_is_too_long_or_none_is_refused(name):
    for made in (lambda: operation(name=name), lambda: step(name), lambda: Hook(name, print)):
        with pytest.raises(InvalidInput, match="at most 512 bytes"):
            made()


def test_a_step_with_a_key_that_is_too_long_is_refused():
    with pytest.raises(InvalidInput, match="at most 512 bytes"):
        step("name", key=TOO_LONG)


@pytest.mark.parametrize("key", [TOO_LONG, ""])
def test_a_key_that_is_too_long_or_empty_is_refused_and_nothing_is_called(runtime, key):
    called = []
    charge = operation(name="charge", key=lambda what: key)(called.append)
    graph = runtime.bind(chain({"node": lambda _: charge("a")}), name="g")
    with pytest.raises(InvalidInput, match="key of 'charge'"):
        graph.invoke({"log": []}, config())
    assert called == []


def test_a_scope_that_is_too_long_is_refused(runtime):
    runtime.bind(chain({"node": lambda _: None}), name="g")
    with pytest.raises(InvalidInput, match="scope"):
        runtime.runs.start("g", {"log": []}, scope=TOO_LONG)
    runtime.runs.start("g", {"log": []}, scope=LONG)


def test_the_longest_names_together_are_stored_and_an_identity_that_is_longer_is_refused(runtime, raw):
    """Of a thread, a node, a name and a key that are as long as each may be."""
    called = []
    charge = operation(name=LONG, key=lambda _: LONG)(called.append)
    thread_id = words(limits.THREAD_ID_BYTES_MAX)
    rest = limits.IDENTITY_BYTES_MAX - len(f"default:{words(36)}") - 2 * len(LONG) - len(thread_id)
    for size, fits in ((rest, True), (rest + 1, False)):
        graph = runtime.bind(chain({words(size): lambda _: charge("a")}), name=f"g{size}")
        if fits:
            graph.invoke({"log": []}, config(thread_id))
            stored = raw.one("SELECT * FROM rp_operations")
            parts = ("space", "thread_id", "checkpoint_ns", "name", "ordinal")
            assert sum(len(stored[part]) for part in parts) == limits.IDENTITY_BYTES_MAX
        else:
            with pytest.raises(InvalidInput, match="2601 bytes of identity"):
                graph.invoke({"log": []}, config(thread_id))
    assert called == ["a"]
