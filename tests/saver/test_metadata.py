"""Metadata: what is merged in from the config, and what never reaches the database (user pain I4)."""

import pytest

from tests.support.checkpoints import at, new_checkpoint

CANARY = "sk-CANARY-4711"


def config(**configurable):
    return {
        **at(**configurable),
        "metadata": {"user": "ada", "run_id": "r1", "__hidden": 1, "thing": object()},
    }


async def stored(saver, way, given, metadata):
    made = new_checkpoint({"a": 1})
    await way(saver, "put", given, made, metadata, {"a": "1"})
    return (await way(saver, "get_tuple", at())).metadata


async def test_simple_values_of_the_config_are_merged_in(saver, way):
    found = await stored(saver, way, config(assistant="b", level=3, ratio=0.5, on=True), {"step": 1, "user": "own"})
    assert found == {
        "step": 1,
        "user": "own",  # what the caller of put says stands above the config
        "run_id": "r1",
        "assistant": "b",
        "level": 3,
        "ratio": 0.5,
        "on": True,
    }


@pytest.mark.parametrize(
    "name",
    ["api_key", "OPENAI_API_KEY", "token", "lease_token", "client_secret", "Password", "authorization", "credentials"],
)
async def test_names_of_secrets_are_not_stored(saver, way, raw, name):
    given = config(**{name: CANARY})
    given["metadata"] |= {f"x-{name}": CANARY}
    found = await stored(saver, way, given, {"step": 1})
    assert CANARY not in repr(found)
    assert CANARY not in repr(raw.dump())
    assert found["user"] == "ada"


async def test_the_config_itself_is_not_changed(saver, way):
    given = config(api_key=CANARY)
    metadata = {"step": 1}
    await stored(saver, way, given, metadata)
    assert given["configurable"]["api_key"] == CANARY
    assert metadata == {"step": 1}
