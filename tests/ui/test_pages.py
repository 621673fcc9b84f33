"""What the pages say, as HTML: every view of real runs, everything escaped, no secret, nothing written."""

import hashlib
import re
from html import unescape
from pathlib import Path

import pytest

from runtime_persist import Runtime
from runtime_persist.inspector.spelling import spelled
from runtime_persist.ui.templating import moment, short, size
from tests.support.graphs import chain, config, says
from tests.ui.conftest import CANARY, HOSTILE, in_process

SECTIONS = (
    "verdict", "timeline", "recovery", "attempts", "journal", "tickets", "checkpoints", "writes", "content", "domains",
    "events", "about",
)  # fmt: skip


def text_of(page):
    """The words of a page, as a person reads them."""
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", page)).split())


def section(page, name):
    (found,) = re.findall(rf'<section class="card[^"]*" id="{name}".*?</section>', page, re.DOTALL)
    return found


def rows_of(path):
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


@pytest.mark.parametrize("run", ["left", "taken over", "asked", "failed", "spent", "queued"])
def test_the_page_of_every_run_has_every_section_and_shows_no_secret(pages, story, run):
    run_id = story[1][run]
    page = pages.get(f"/runs/{run_id}")
    assert page.status_code == 200
    for name in SECTIONS:
        assert section(page.text, name)
    assert f"Run {run_id}" in text_of(page.text)
    assert CANARY not in page.text
    assert "<script>document" not in page.text
    assert 'onerror="' not in page.text


def test_the_verdict_is_the_sentence_of_why_with_its_proof(pages, story):
    page = pages.get(f"/runs/{story[1]['left']}").text
    said = text_of(section(page, "verdict"))
    assert said.startswith("? unknown it may still run, and nothing proves it")
    assert "Proof attempt 1 passed its start fence" in said
    assert "What nothing proves whether the code of attempt 1 still runs" in said
    assert "whether charge(order='order-7') happened: try 1 began" in said
    assert "does the outside know idempotency key" in said


def test_what_a_run_asks_is_there_and_is_text(pages, story):
    said = text_of(section(pages.get(f"/runs/{story[1]['asked']}").text, "verdict"))
    assert "waiting approval" in said
    assert HOSTILE.replace('"', '\\"') in said


def test_the_timeline_has_epochs_a_takeover_and_an_unknown_try(pages, story):
    left = section(pages.get(f"/runs/{story[1]['left']}").text, "timeline")
    assert "epoch 1, initial: unknown" in left
    assert "charge, try 1, epoch 1: unknown" in left
    taken = section(pages.get(f"/runs/{story[1]['taken over']}").text, "timeline")
    assert "<title>epoch 1</title>" in taken
    assert "<title>epoch 2</title>" in taken
    assert "takeover → epoch 2" in taken


def test_journal_recovery_tickets_checkpoints_and_content_say_what_is_stored(pages, story):
    taken = pages.get(f"/runs/{story[1]['taken over']}").text
    assert "charge" in text_of(section(taken, "journal"))
    assert "If unknown ask" in text_of(section(taken, "journal"))
    recovery = text_of(section(taken, "recovery"))
    assert "call charge" in recovery
    assert f"runtime-persist recover apply {story[1]['taken over']} --plan" in recovery
    asked = pages.get(f"/runs/{story[1]['asked']}").text
    assert "__interrupt__" in text_of(section(asked, "writes"))
    assert re.search(r"log [\d,]+ B", text_of(section(asked, "content")))
    spent = text_of(section(pages.get(f"/runs/{story[1]['spent']}").text, "tickets"))
    assert "loops 1 of 1 consumed" in spent
    assert "consumed think" in spent


def test_two_checkpoints_are_compared_channel_by_channel_without_secrets(pages, story):
    run_id = story[1]["asked"]
    page = pages.get(f"/runs/{run_id}").text
    first, second = (re.findall(rf'name="{name}" value="([^"]+)"[^>]* checked', page)[0] for name in "ab")
    compared = pages.get(f"/runs/{run_id}/compare", params={"a": first, "b": second})
    said = text_of(compared.text)
    assert compared.status_code == 200
    assert "log changed" in said
    assert '+ "deep"' in said
    assert "**********" in said
    assert CANARY not in compared.text
    for a, b, status in ((first, "@nothing", 404), ("", "", 400), ("x@" + first[1:], second, 400)):
        assert pages.get(f"/runs/{run_id}/compare", params={"a": a, "b": b}).status_code == status


def test_runs_are_found_by_status_graph_thread_and_text_a_page_at_a_time(pages, story):
    runs = story[1]

    def found(**wanted):
        return set(re.findall(r'href="/runs/([^"]+)"', pages.get("/", params=wanted).text))

    assert found(status="unknown") == {runs["left"]}
    assert found(graph="shop") == {runs["left"], runs["taken over"]}
    assert found(thread="asked") == {runs["asked"]}
    assert found(text="CONNECT%") == set()
    assert found(text="ERR_NOTHING") == set()
    assert found(text=runs["spent"][-8:].upper()) == {runs["spent"]}
    assert found(text="key-59") == {runs["queued"]}
    first = pages.get("/", params={"status": "queued"}).text
    (older,) = re.findall(r'rel="next" href="([^"]+)"', first)
    second = pages.get(unescape(older)).text
    shown = [re.findall(r'href="/runs/([^"]+)"', one) for one in (first, second)]
    assert (len(shown[0]), len(shown[1])) == (50, 10)
    assert sorted(shown[0] + shown[1], reverse=True) == shown[0] + shown[1]
    assert 'rel="next"' not in second
    assert "No run is like that" in pages.get("/", params={"text": "nothing at all"}).text


def test_news_of_a_run_are_its_events_behind_a_number_and_nothing_when_there_are_none(pages, story):
    run_id = story[1]["asked"]
    news = pages.get(f"/runs/{run_id}/news", params={"after": 2, "shown": "waiting_approval"})
    assert news.status_code == 200
    assert [int(one) for one in re.findall(r'<td class="num">(\d+)</td><td><time', news.text)][:2] == [3, 4]
    (after,) = re.findall(r"news\?after=(\d+)", news.text)
    same = pages.get(f"/runs/{run_id}/news", params={"after": after, "shown": "waiting_approval"})
    assert (same.status_code, same.text) == (204, "")
    ended = pages.get(f"/runs/{story[1]['failed']}/news", params={"after": 0, "shown": "running"})
    assert ended.status_code == 286
    assert "hx-trigger" not in ended.text


@pytest.mark.parametrize("kind", ["operations", "checkpoints", "events"])
def test_history_is_paged_by_key(pages, story, kind):
    page = pages.get(f"/runs/{story[1]['asked']}/history/{kind}")
    assert page.status_code == 200
    assert pages.get(f"/runs/{story[1]['asked']}/history/nothing").status_code == 404
    if kind == "events":
        older = pages.get(f"/runs/{story[1]['asked']}/history/events", params={"before": 3})
        assert re.findall(r'<td class="num">(\d+)</td><td><time', older.text) == ["2", "1"]


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("/runs/nothing", 404, "RUN_NOT_FOUND"),
        ("/runs/nothing/news", 404, "RUN_NOT_FOUND"),
        ("/runs/nothing/history/events", 404, "RUN_NOT_FOUND"),
        ("/nothing", 404, "NOT_FOUND"),
        ("/static/../app.py", 404, "NOT_FOUND"),
        ("/static/nothing", 404, "NOT_FOUND"),
        ("/?text=%00", 400, "INVALID_INPUT"),
        ("/runs/%00", 400, "INVALID_INPUT"),
        ("/runs/%3Cscript%3E", 404, "&lt;script&gt;"),
    ],
)
def test_what_is_not_there_is_said_in_a_page(pages, path, status, said):
    answer = pages.get(path)
    assert (answer.status_code, said in answer.text) == (status, True)
    assert "<script>" not in answer.text


def test_workers_and_graphs_have_a_page(pages):
    said = text_of(pages.get("/fleet").text)
    assert "No worker has reported itself" in said
    assert "shop" in said
    assert "sqlite 3." in said


def test_looking_at_everything_leaves_the_file_byte_for_byte_as_it_was(own_story):
    url, runs = own_story
    path = url.removeprefix("sqlite:///")
    before = rows_of(path)
    with in_process(url) as pages:
        for run_id in runs.values():
            for more in ("", "/news?after=1", "/history/events", "/history/operations"):
                assert pages.get(f"/runs/{run_id}{more}").status_code in {200, 286}
        assert pages.get("/").status_code == pages.get("/fleet").status_code == 200
    assert rows_of(path) == before


def test_the_list_and_a_run_are_the_same_on_postgresql(postgres_url):
    with Runtime.open(postgres_url) as runtime:
        runtime.bind(chain({"node": says("x")}), name="hello").invoke({"log": []}, config("t"))
        (run,) = runtime.runs.list()
    with in_process(postgres_url) as pages:
        for wanted in ({}, {"status": "succeeded"}, {"text": "HELLO"}, {"thread": "t", "graph": "hello"}):
            assert f"/runs/{run.run_id}" in pages.get("/", params=wanted).text
        assert "No run is like that" in pages.get("/", params={"status": "unknown"}).text
        page = pages.get(f"/runs/{run.run_id}").text
        for name in SECTIONS:
            assert section(page, name)


def test_times_sizes_and_ids_are_spelled_for_people():
    assert str(moment(None)) == "–"
    now = 1_796_102_700_000_000
    assert str(moment(now, now)).endswith(">05:25:00.000</time>")
    assert str(moment(now, now - 86_400_000_000)).endswith(">2026-12-01 05:25:00</time>")
    assert [size(one) for one in (None, 0, 9_999, 10_000, 12_345_678, 10**12)] == [
        "–", "0 B", "9,999 B", "10 kB", "12 MB" if round(12_345_678 / 1_000) >= 10_000 else "", "1,000 GB",
    ]  # fmt: skip
    assert short("01a23017-8cc2-739e-a93b-98f255141c9e") == "…f255141c9e"
    assert spelled(1_500_000) == "1.5 s"
