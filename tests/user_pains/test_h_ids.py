"""Ids, keys, filters and listings of every kind (H1 to H5); tests/saver/ has each rule by itself."""

import time
import unicodedata
import uuid

import pytest
from langgraph.checkpoint.base import id as lang_ids

from runtime_persist.errors import InvalidInput, InvalidThreadId
from tests.support.checkpoints import Steps, at, new_checkpoint
from tests.support.graphs import chain, config, says

# --- H1 ---------------------------------------------------------------------------------------------------------------


ONE = uuid.UUID(int=1)


@pytest.fixture(params=["L0", "L1"])
def invoked(request, runtime):
    """A graph that counts its runs: with the checkpointer, and bound."""
    ran = []
    graph = chain({"node": lambda _: ran.append(1) or {"log": ["x"]}}, checkpointer=runtime.checkpointer)
    return (runtime.bind(graph, name="g") if request.param == "L1" else graph), ran


async def test_a_thread_has_one_form_of_its_id(invoked, way, raw):
    """H1: 1 and "1" are one thread, in every row."""
    graph, _ = invoked
    await way(graph, "invoke", {"log": []}, config(1))
    await way(graph, "invoke", {"log": []}, config("1"))
    for thread_id in (1, "1"):
        assert (await way(graph, "get_state", config(thread_id))).values["log"] == ["x", "x"]
    for table in ("rp_checkpoints", "rp_writes", "rp_heads"):
        assert raw.rows(f"SELECT DISTINCT thread_id FROM {table}") == [{"thread_id": "1"}]


async def test_a_thread_id_that_is_none_or_missing_is_an_error_at_invoke(invoked, way, raw):
    """H1: before any node runs and before anything is written."""
    graph, ran = invoked
    before = raw.dump()
    for given in (config(None), {"configurable": {"checkpoint_ns": ""}}, {}):
        with pytest.raises((InvalidThreadId, ValueError), match="thread_id"):  # without configurable it is LangGraph's
            await way(graph, "invoke", {"log": []}, given)
    assert ran == []
    assert raw.dump() == before


@pytest.mark.parametrize("thread_id", [ONE, b"x"], ids=["UUID", "bytes"])
async def test_a_thread_id_of_another_type_is_refused_at_invoke_by_a_bound_graph(runtime, way, raw, thread_id):
    """H1: and by every method of the saver, so a thread never has two forms."""
    ran = []
    bound = runtime.bind(chain({"node": lambda _: ran.append(1)}), name="g")
    before = raw.dump()
    with pytest.raises(InvalidThreadId, match="thread_id must be a text or an int"):
        await way(bound, "invoke", {"log": []}, config(thread_id))
    with pytest.raises(InvalidThreadId, match="thread_id must be a text or an int"):
        await way(runtime.checkpointer, "get_tuple", config(thread_id))
    assert ran == []
    assert raw.dump() == before


async def test_langgraph_makes_a_uuid_its_text_before_a_plain_checkpointer_sees_it(saver, way, raw):
    """H1: so that is the one form: the text and the UUID are one thread, and the saver itself takes no UUID."""
    graph = chain({"node": says("x")}, checkpointer=saver)
    await way(graph, "invoke", {"log": []}, config(ONE))
    assert raw.rows("SELECT DISTINCT thread_id FROM rp_checkpoints") == [{"thread_id": str(ONE)}]
    for thread_id in (ONE, str(ONE)):
        assert (await way(graph, "get_state", config(thread_id))).values["log"] == ["x"]
    with pytest.raises(InvalidThreadId):
        await way(saver, "get_tuple", config(ONE))


# --- H2 ---------------------------------------------------------------------------------------------------------------

ODD = [
    "a:b|c%_'\\;--", "*", "t%", "t", "T", "t1", "t10", "t[1]", "t_", "a\nb", "../x", " ", "\t", "😀", "|", ":",
    "t|", "t:", unicodedata.normalize("NFC", "é"), unicodedata.normalize("NFD", "é"), "me@example.org", "https://a/b?c=d#e",
    "%s", "?", "$1", ":x", "f" * 1_024,
]  # fmt: skip


async def test_no_thread_sees_or_deletes_what_belongs_to_another(saver, way, raw):
    """H2: each odd id is a thread of its own, also as namespace; deleting "t%" or "*" deletes nothing but itself."""
    for n, thread_id in enumerate(ODD):
        for ns in ("", "t%|*"):
            steps = Steps(way, saver, thread_id, ns)
            await steps.put(a=n, ns=ns)
            await way(saver, "put_writes", steps.config, [("x", n)], "task")
    left = dict(enumerate(ODD))
    for gone in (None, "t%", "*", "t_", "t", " ", "é"):
        if gone is not None:
            await way(saver, "delete_thread", gone)
            left = {n: thread_id for n, thread_id in left.items() if thread_id != gone}
        for n, thread_id in left.items():
            for ns in ("", "t%|*"):
                found = await way(saver, "get_tuple", at(thread_id, ns=ns))
                assert found.config["configurable"]["thread_id"] == thread_id
                assert found.checkpoint["channel_values"] == {"a": n, "ns": ns}
                assert found.pending_writes == [("task", "x", n)]
            listed = await way.all(saver, "list", {"configurable": {"thread_id": thread_id}})
            assert [one.config["configurable"]["thread_id"] for one in listed] == [thread_id] * 2
        assert raw.value("SELECT count(*) FROM rp_checkpoints") == 2 * len(left)
        assert raw.value("SELECT count(DISTINCT thread_id) FROM rp_writes") == len(left)
    assert await way(saver, "get_tuple", at("t%")) is None


@pytest.mark.parametrize(
    ("thread_id", "says_why"),
    [("f" * 3_000, "3000 bytes"), ("a\0b", "NUL"), ("a\ud800", "lone surrogate")],
    ids=["3,000 characters", "NUL", "surrogate"],
)
async def test_ids_that_a_database_cannot_hold_are_refused_in_the_same_words_on_both(
    saver, way, raw, thread_id, says_why
):
    """H2: before anything is written, and by a graph too."""
    before = raw.dump()
    graph = chain({"node": says("x")}, checkpointer=saver)
    with pytest.raises(InvalidThreadId, match=says_why):
        await way(graph, "invoke", {"log": []}, config(thread_id))
    with pytest.raises(InvalidThreadId, match=says_why):
        await way(saver, "delete_thread", thread_id)
    assert raw.dump() == before


# --- H3 ---------------------------------------------------------------------------------------------------------------

INJECTIONS = ["x') OR 1=1 --", "x' OR '1'='1", "') UNION SELECT * FROM rp_blobs --", "x%' OR 1=1", "$.x", "x", "%", "*"]
LEGAL = ['tenant"', "a.b", "it's", "ключ", "x%", "", " ", "a\nb", "a\0b", "$1", "?", "😀", "__proto__"]


async def test_a_filters_keys_are_names_and_never_a_part_of_a_statement(saver, way, raw):
    """H3: injected keys find nothing, odd but legal ones find their row."""
    for n, key in enumerate(LEGAL):
        await way(saver, "put", at(str(n)), new_checkpoint({"a": n}), {key: "acme"}, {"a": "1"})
    before = raw.dump()
    for key in INJECTIONS:
        for value in ("acme", "x' OR '1'='1", 1, None):
            assert await way.all(saver, "list", None, filter={key: value}) == []
    for n, key in enumerate(LEGAL):
        found = await way.all(saver, "list", None, filter={key: "acme"})
        assert [one.config["configurable"]["thread_id"] for one in found] == [str(n)]
        assert await way.all(saver, "list", None, filter={key: "x' OR '1'='1"}) == []
    assert raw.dump() == before


# --- H4 ---------------------------------------------------------------------------------------------------------------

STORED = {
    "acme": {"tenant_id": "acme"}, "globex": {"tenant_id": "globex"}, "upper": {"tenant_id": "ACME"},
    "longer": {"tenant_id": "acme2"}, "none": {"tenant_id": None}, "absent": {},
    "true": {"n": True}, "one": {"n": 1}, "one and a half": {"n": 1.5}, "float": {"n": 1.0}, "text": {"n": "1"},
    "false": {"n": False}, "zero": {"n": 0},
    "nested": {"d": {"a": {"b": 1}, "c": 2}}, "half nested": {"d": {"a": {"b": 1}}}, "list": {"l": [1, "a"]},
    "turned list": {"l": ["a", 1]}, "one in a list": {"n": [1]},
}  # fmt: skip
FILTERS = [
    ({"tenant_id": "acme"}, {"acme"}),
    ({"tenant_id": None}, {"none"}),
    ({"missing": None}, set()),
    ({"missing": "acme"}, set()),
    ({"n": True}, {"true"}),
    ({"n": False}, {"false"}),
    ({"n": 1}, {"one", "float"}),
    ({"n": 1.0}, {"one", "float"}),
    ({"n": 0}, {"zero"}),
    ({"n": "1"}, {"text"}),
    ({"n": [1]}, {"one in a list"}),
    ({"d": {"c": 2, "a": {"b": 1}}}, {"nested"}),
    ({"d": {"a": {"b": 1}}}, {"half nested"}),
    ({"d": {"a": {"b": True}, "c": 2}}, set()),
    ({"d": {}}, set()),
    ({"l": [1, "a"]}, {"list"}),
    ({"l": [1]}, set()),
    ({"tenant_id": "acme", "n": 1}, set()),
    ({}, set(STORED)),
]


async def test_a_filter_matches_what_is_equal_and_nothing_else(saver, way):
    """H4: None matches a key that is there with None; a bool is no number; numbers by value; containers as a whole."""
    for thread_id, metadata in STORED.items():
        await way(saver, "put", at(thread_id), new_checkpoint({"a": 1}), metadata, {"a": "1"})
    for wanted, threads in FILTERS:
        found = await way.all(saver, "list", None, filter=wanted)
        assert {one.config["configurable"]["thread_id"] for one in found} == threads, wanted
        assert len(found) == len(threads)


async def test_a_graph_lists_the_checkpoints_of_one_tenant(saver, way):
    """H4: the tenant's id comes from the config, as users give it."""
    graph = chain({"node": says("x")}, checkpointer=saver)
    for tenant in ("acme", "globex"):
        given = {**config(f"of {tenant}"), "metadata": {"tenant_id": tenant}}
        await way(graph, "invoke", {"log": []}, given)
    found = await way.all(saver, "list", None, filter={"tenant_id": "acme"})
    assert {one.config["configurable"]["thread_id"] for one in found} == {"of acme"}
    assert len(found) == 3


# --- H5 ---------------------------------------------------------------------------------------------------------------


def ids(found):
    return [one.config["configurable"]["checkpoint_id"] for one in found]


def milliseconds(checkpoint_id):
    """The time in an id: 48 bits above the version and 12 below it, in units of 100 ns."""
    number = uuid.UUID(checkpoint_id).int
    return ((number >> 80) << 12 | (number >> 64) & 0x0FFF) // 10_000


async def test_checkpoints_of_one_millisecond_are_listed_newest_first_whatever_is_asked(saver, way, monkeypatch):
    """H5: 100 checkpoints in one tick of the clock; any limit, config and before; a negative limit is refused."""
    now = (time.time_ns() // 1_000_000 + 1) * 1_000_000  # ids count on from the beginning of a millisecond
    monkeypatch.setattr(lang_ids.time, "time_ns", lambda: now)
    steps = Steps(way, saver)
    for n in range(100):
        await steps.put(a=n)
    newest = steps.ids[::-1]
    assert len({milliseconds(one) for one in newest}) == 1
    for given in (None, {}, {"configurable": {}}, {"configurable": {"thread_id": "t"}}, at()):
        for limit, count in ((None, 100), (0, 0), (2, 2), (100, 100), (101, 100)):
            assert ids(await way.all(saver, "list", given, limit=limit)) == newest[:count]
        with pytest.raises(InvalidInput, match="not negative, not -1"):
            await way.all(saver, "list", given, limit=-1)
        for before, rest in ((newest[0], newest[1:]), (newest[-1], []), (newest[49], newest[50:])):
            assert ids(await way.all(saver, "list", given, before=at("t", before))) == rest
            assert ids(await way.all(saver, "list", given, before=at("t", before), limit=2)) == rest[:2]
    unknown = {"0" * 36: [], "f" * 36: newest, "zzz": newest, newest[49][:-1]: newest[50:]}
    for before, rest in unknown.items():
        assert ids(await way.all(saver, "list", at(), before=at("t", before))) == rest
    assert (await way(saver, "get_tuple", at())).checkpoint["channel_values"] == {"a": 99}


async def test_a_graph_that_makes_many_checkpoints_in_one_millisecond_has_them_in_order(saver, way, monkeypatch):
    """H5: steps and parents follow each other as the graph ran."""
    now = time.time_ns()
    monkeypatch.setattr(lang_ids.time, "time_ns", lambda: now)
    graph = chain({f"n{n}": says(n) for n in range(20)}, checkpointer=saver)
    await way(graph, "invoke", {"log": []}, config())
    found = await way.all(saver, "list", config())
    assert [one.metadata["step"] for one in found] == list(range(20, -2, -1))
    assert [one.parent_config and one.parent_config["configurable"]["checkpoint_id"] for one in found] == [
        *ids(found)[1:],
        None,
    ]
