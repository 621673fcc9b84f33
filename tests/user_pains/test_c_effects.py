"""Row C1: what a node did before it asked is not done again by who answers, in whatever process."""

from collections import Counter

from tests.soak.programs import Outside
from tests.user_pains.programs_effects import QUESTIONS, asks_in_a_loop

ORDINALS = "SELECT ordinal, try_no, status FROM rp_operations ORDER BY ordinal"


def test_c1_a_node_that_asks_in_a_loop_repeats_nothing_whoever_answers(runtime, shared_url, fork, raw, tmp_path):
    """Each answer comes in a process of its own; the one before is killed."""
    outside = Outside(tmp_path / "outside")
    for answer in (None, "a", "b", "c"):
        child = fork(asks_in_a_loop, shared_url, str(outside.path), answer)
        (log,) = child.until("stands")
        known = raw.rows(ORDINALS)
        child.kill()
        assert [row["ordinal"] for row in known] == [f"#{number}" for number in range(len(known))]
    assert log == ["asked 0", "a", "asked 1", "b", "asked 2", "c"]
    told = Counter(words[0] if words[0] == "entered" else words[1] for words in outside.lines())
    assert told == {"entered": QUESTIONS + 1, **{str(number): 1 for number in range(QUESTIONS)}}
    assert [(row["try_no"], row["status"]) for row in known] == [(1, "succeeded")] * QUESTIONS
    assert runtime.runs.list(thread_id="t")[0].status == "succeeded"
