"""An agent's process is killed in, between and behind its calls (DB-03, DB-04)."""

from collections import Counter

import pytest

from runtime_persist.errors import OperationUnknown
from runtime_persist.testing.faults import check_invariants, read_rows
from tests.fixtures.raw import wait_until
from tests.middleware import programs
from tests.middleware.agents import SAID
from tests.soak.programs import Outside
from tests.support.graphs import config
from tests.support.leases import run_out

ALL = ("model0", "between2", "pay-a", "pay-b", "model1", "between5")
BEHIND = {
    "model0": [],
    "between2": ["model"],
    "pay-a": ["model", "pay"],
    "model1": ["model", "pay", "pay"],
    "between5": ["model", "model", "pay", "pay"],
}
"""Where it is killed: the operations that have succeeded by then (the other parallel tool among them)."""
SUCCEEDED = "SELECT name FROM rp_operations WHERE status = 'succeeded' ORDER BY name"


@pytest.fixture
def outside(tmp_path):
    return Outside(tmp_path / "outside")


@pytest.fixture
def undisturbed(open_runtime, tmp_path):
    """The messages of a run that nobody disturbed."""
    graph = open_runtime().bind(programs.paying(Outside(tmp_path / "undisturbed")), name="agent")
    return said(graph.invoke(SAID, config("undisturbed")))


def said(output):
    """What the messages are, but for the ids that each run makes anew."""
    kept = ("type", "content", "tool_calls", "tool_call_id", "usage_metadata", "status")
    return [{name: getattr(message, name, None) for name in kept} for message in output["messages"]]


def killed(runtime, raw, fork, url, outside, way, where, **policies):
    """Kill a process that calls the agent where it is told to stop; bind the same agent here."""
    child = fork(programs.caller, url, str(outside.path), where, way.asynchronous, policies)
    for _ in where:
        child.until("at")
    if len(where) == 1:
        wait_until(lambda: [row["name"] for row in raw.rows(SUCCEEDED)] == BEHIND[where[0]], "the others are stored")
    child.kill()
    run_out(raw)
    return runtime.bind(programs.paying(outside, **policies), name="agent")


@pytest.mark.parametrize("where", BEHIND)
async def test_killed_anywhere_the_agent_ends_as_if_undisturbed_and_only_what_is_declared_is_repeated(
    open_runtime, shared_url, way, raw_of, fork, outside, where, request
):
    runtime = open_runtime()
    raw = raw_of(runtime)
    graph = killed(runtime, raw, fork, shared_url, outside, way, [where], tools={"pay": "retry"})
    output = await way(graph, "invoke", None, config())
    assert programs.counted(outside) == Counter(ALL) + Counter([where])
    keys = {tuple(words) for words in outside.lines() if words[0].startswith("pay")}
    assert len(keys) == 2  # a repeated call has the key that it had before
    assert check_invariants(read_rows(runtime.engine)) == []
    assert said(output) == request.getfixturevalue("undisturbed")


async def test_killed_in_two_parallel_tools_each_is_repeated_once_under_its_own_key(
    open_runtime, shared_url, way, raw_of, fork, outside
):
    runtime = open_runtime()
    where = ["pay-a", "pay-b"]
    graph = killed(runtime, raw_of(runtime), fork, shared_url, outside, way, where, tools="retry")
    await way(graph, "invoke", None, config())
    assert programs.counted(outside) == Counter(ALL) + Counter(where)
    assert len({tuple(words) for words in outside.lines() if words[0].startswith("pay")}) == 2


async def test_a_tool_that_was_running_is_asked_about_and_the_answer_is_its_message(
    open_runtime, shared_url, way, raw_of, fork, outside
):
    runtime = open_runtime()
    graph = killed(runtime, raw_of(runtime), fork, shared_url, outside, way, ["pay-a"])
    with pytest.raises(OperationUnknown) as caught:
        await way(graph, "invoke", None, config())
    asked = caught.value.details
    assert (asked["name"], asked["request"]) == ("pay", "what='a'")
    (run,) = await way(runtime.runs, "list")
    assert run.status == "waiting_approval"
    await way(runtime.runs, "resolve", asked["operation_id"], happened=True, result="paid by hand")
    output = await way(graph, "invoke", None, config())
    assert [message.text for message in output["messages"]][2:] == ["paid by hand", "paid b", "both are paid"]
    assert output["messages"][2].tool_call_id == "call-a"
    assert programs.counted(outside) == Counter(ALL)


# --- hooks ------------------------------------------------------------------------------------------------------------

HOOKS = ("ask1", "ask2", "say1", "say2")
BEFORE = {"tool": 1, "model": 0}
"""How many operations end before the first hook of the call."""
EFFECT = {"tool": ("pay", "a!!"), "model": ("model0", "said:!!")}
ANSWER = {"tool": ["paid a!!??", "done"], "model": ["done??"]}


async def hooked_and_killed(runtime, raw, fork, url, outside, way, kind, command, behind):
    child = fork(programs.dies, url, str(outside.path), kind, way.asynchronous, command, behind)
    assert child.ended() == -9
    told = programs.counted(outside)
    run_out(raw)
    graph = runtime.bind(programs.hooked(outside, kind), name="agent")
    output = await way(graph, "invoke", None, config())
    assert [message.text for message in output["messages"]][-len(ANSWER[kind]) :] == ANSWER[kind]
    return told


@pytest.mark.parametrize("decided", [0, 1])
@pytest.mark.parametrize("kind", ["tool", "model"])
async def test_db03_a_stored_raw_answer_is_not_asked_for_again_only_the_hooks_that_are_left_run(
    open_runtime, shared_url, way, raw_of, fork, outside, kind, decided
):
    """Killed when the raw answer is stored, or when the first response hook's decision is too."""
    runtime = open_runtime()
    command = "CompleteOperation" if decided else "SaveAttemptRaw"
    behind = BEFORE[kind] + 2 if decided else 0
    before = await hooked_and_killed(runtime, raw_of(runtime), fork, shared_url, outside, way, kind, command, behind)
    assert (before["say1"], before["say2"]) == (decided, 0)
    told = programs.counted(outside)
    assert {name: told[name] for name in HOOKS} == dict.fromkeys(HOOKS, 1)
    name, sent = EFFECT[kind]
    assert [words for words in outside.lines() if words[0] == name] == [[name, sent]]


@pytest.mark.parametrize("kind", ["tool", "model"])
async def test_db04_a_decision_that_is_stored_and_not_applied_is_applied_once(
    open_runtime, shared_url, way, raw_of, fork, outside, kind
):
    """The revision goes up by one for it: the next hook sees 1, the one behind the call 2."""
    runtime = open_runtime()
    command, behind = "CompleteOperation", BEFORE[kind]
    before = await hooked_and_killed(runtime, raw_of(runtime), fork, shared_url, outside, way, kind, command, behind)
    assert (before["ask1"], before["ask2"]) == (1, 0)
    revisions = [(name, int(revision)) for name, revision, *_ in outside.lines() if name in HOOKS]
    assert revisions == [("ask1", 0), ("ask2", 1), ("say1", 2), ("say2", 3)]
    name, sent = EFFECT[kind]
    assert [words for words in outside.lines() if words[0] == name] == [[name, sent]]


@pytest.mark.parametrize(
    ("options", "paid"),
    [
        pytest.param({}, ["a!"], id="goes-on-without-it"),
        pytest.param({"when_unknown": "deny"}, [], id="denied"),
        pytest.param({"fetch": lambda _: None}, ["a!"], id="cannot-be-fetched"),
        pytest.param({"fetch": lambda _: (programs.Patch({"what": "fetched"}),)}, ["fetched!"], id="fetched"),
    ],
)
async def test_a_hook_that_was_running_is_fetched_or_indeterminate_and_never_asked_again(
    open_runtime, shared_url, way, raw_of, fork, outside, options, paid
):
    runtime = open_runtime()
    child = fork(programs.dies_in_hook, shared_url, str(outside.path), "ask1", way.asynchronous)
    assert child.ended() == -9
    run_out(raw_of(runtime))
    graph = runtime.bind(programs.hooked(outside, "tool", **options), name="agent")
    await way(graph, "invoke", None, config())
    assert programs.counted(outside)["ask1"] == 1
    assert [words[1] for words in outside.lines() if words[0] == "pay"] == paid
