"""The pages in a headless Chromium, served by the command: every view, acting, the keyboard, both themes, two sizes."""

import json
from importlib.resources import files

import pytest

from runtime_persist import Runtime
from tests.support.graphs import chain, config, says
from tests.ui.conftest import TOKEN, serving

AXE = (files("axe_core_python") / "axe.min.js").read_text()
NARROW, WIDE = 360, 1_600
CHECKED = ("runs", "unknown", "asks", "problem")
"""Views whose accessibility is checked in the default set: between them they have everything that others have."""


RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]


def violations(page, rules=RULES):
    """What the rules for accessible pages (WCAG 2.1 A and AA) find: contrast, labels, landmarks, names, headers."""
    page.value(f"{AXE};0")
    found = page.value(
        f"axe.run(document, {{runOnly: {json.dumps(rules)}}})"
        ".then(done => JSON.stringify(done.violations.map("
        "one => [one.id, one.nodes.slice(0, 3).map(node => node.html.slice(0, 200) + node.failureSummary)])))"
    )
    return json.loads(found)


def addresses(story):
    runs = story[1]
    asked = runs["asked"]
    return {
        "runs": "/",
        "nothing found": "/?text=nothing+at+all",
        "unknown": f"/runs/{runs['left']}",
        "taken over": f"/runs/{runs['taken over']}",
        "asks": f"/runs/{asked}",
        "failed": f"/runs/{runs['failed']}",
        "budget": f"/runs/{runs['spent']}",
        "history": f"/runs/{asked}/history/events",
        "operations": f"/runs/{runs['spent']}/history/operations",
        "workers": "/fleet",
        "problem": "/runs/nothing",
    }


@pytest.mark.parametrize("checked", [CHECKED, pytest.param(None, id="every", marks=pytest.mark.exhaustive)])
def test_every_view_fits_is_accessible_in_both_themes_and_complains_of_nothing(browser, served, story, checked):
    base = served[0]
    with browser.page() as page:
        for name, address in addresses(story).items():
            page.open(base + address)
            for width in (NARROW, WIDE):
                page.looks(width)
                assert page.value("document.documentElement.scrollWidth") <= width, (name, width)
            if checked is None or name in checked:
                assert violations(page) == [], name
                page.looks(WIDE, scheme="dark")
                assert violations(page, ["color-contrast"]) == [], (name, "dark")
            assert "owned" not in page.value("document.title"), name
            expected = 1 if name == "problem" else 0  # the status of the page itself
            assert len(page.complaints()) == expected, (name, page.complaints())
            asked = {one.partition("?")[0].split("/")[2] for one in page.requested() if not one.startswith("data:")}
            assert asked == {base.split("/")[2]}
            browser.events.clear()


def test_two_checkpoints_are_compared_without_leaving_the_page(browser, served, story):
    with browser.page() as page:
        page.open(f"{served[0]}/runs/{story[1]['asked']}")
        page.click("#checkpoints button")
        page.wait("document.querySelector('#comparison ins') !== null")
        assert "deep" in page.value("document.querySelector('#comparison').innerText")
        assert page.value("location.pathname").endswith(story[1]["asked"])
        assert violations(page) == []
        assert page.complaints() == []


def test_runs_are_filtered_as_one_types_and_the_address_has_the_filter(browser, served, story):
    with browser.page() as page:
        page.open(f"{served[0]}/")
        assert page.value("document.querySelectorAll('#found tbody tr').length") == 50
        page.value("document.querySelector('input[name=text]').focus()")
        page.type("key-5")
        page.key("Enter")
        page.wait("document.querySelectorAll('#found tbody tr').length === 11")
        assert "text=key-5" in page.value("location.search")
        assert page.complaints() == []


def test_events_appear_as_they_happen_and_the_verdict_follows(browser, served, story):
    url, runs = served[1], story[1]
    with browser.page() as page:
        page.open(f"{served[0]}/runs/{runs['queued']}")
        before = page.value("document.querySelectorAll('#event-rows tr').length")
        with Runtime.open(url) as runtime:
            runtime.runs.cancel(runs["queued"])
        page.wait(f"document.querySelectorAll('#event-rows tr').length > {before}")
        page.wait("document.querySelector('#verdict .pill').innerText.includes('cancelled')")
        page.wait("document.querySelector('#live').innerText.includes('no more')")
        numbers = page.value("[...document.querySelectorAll('#event-rows td:first-child')].map(one => +one.innerText)")
        assert numbers == list(range(1, len(numbers) + 1))
        assert page.value("document.querySelectorAll('#verdict, #timeline').length") == 2
        assert page.complaints() == []


def test_a_person_at_the_keyboard_signs_in_and_answers_a_run(browser, served, story):
    url, runs = served[1], story[1]
    with browser.page() as page:
        page.open(f"{served[0]}/")
        page.key("Tab")
        assert page.focused() == "Skip to the content"
        page.key("Enter")
        assert page.value("document.activeElement.id") == "main"
        page.open(f"{served[0]}/runs/{runs['asked']}")
        page.tab_to(lambda: page.focused() == "sign in to act")
        outline = page.value("getComputedStyle(document.activeElement).outlineStyle")
        assert (page.focused(), outline) == ("sign in to act", "solid")
        with page.loading():
            page.key("Enter")
        page.tab_to(lambda: page.value("document.activeElement.name") == "token")
        page.type(TOKEN)
        with page.loading():
            page.key("Enter")
        assert page.value("location.pathname") == f"/runs/{runs['asked']}"
        page.tab_to(lambda: page.value("document.activeElement.name") == "value")
        page.type('{"answer": "yes"}')
        page.tab_to(lambda: page.focused() == "Answer")
        assert violations(page) == []
        with page.loading():
            page.key("Enter")
        assert "The answer is stored" in page.value("document.querySelector('main').innerText")
        assert page.complaints() == []
    with Runtime.open(url) as runtime:
        assert runtime.runs.get(runs["asked"]).status == "queued"


def test_without_a_session_a_form_changes_nothing(browser, served, story):
    url, runs = served[1], story[1]
    with browser.page() as page:
        page.open(f"{served[0]}/runs/{runs['spent']}")
        assert page.value("document.querySelectorAll('main form[method=post]').length") == 0
        with page.loading():
            page.value(
                "(() => { const form = document.createElement('form'); form.method = 'post';"
                f"form.action = '/runs/{runs['spent']}/cancel'; document.body.append(form); form.submit(); }})()"
            )
        assert "Sign in with the token first" in page.value("document.querySelector('main').innerText")
    with Runtime.open(url) as runtime:
        assert runtime.runs.get(runs["spent"]).status == "waiting_approval"


def test_the_list_on_postgresql_is_a_page_too(browser, postgres_url):
    with Runtime.open(postgres_url) as runtime:
        runtime.bind(chain({"node": says("x")}), name="hello").invoke({"log": []}, config("t"))
    with serving(postgres_url) as said, browser.page() as page:
        page.open(said["url"])
        assert page.value("document.querySelectorAll('#found tbody tr').length") == 1
        with page.loading():
            page.click("#found a")
        assert "succeeded" in page.value("document.querySelector('#verdict').innerText")
        assert page.complaints() == []


@pytest.mark.parametrize(("width", "scheme"), [(NARROW, "light"), (WIDE, "dark")])
def test_the_page_as_a_file_reads_without_a_network_and_without_a_script(
    browser, exported, cli, tmp_path, width, scheme
):
    (tmp_path / "run.zip").write_bytes(exported["taken over"])
    assert cli("bundle", "show", str(tmp_path / "run.zip"), "--html", str(tmp_path / "run.html")).exit_code == 0
    with browser.page(width, scheme=scheme) as page:
        page.open(f"file://{tmp_path / 'run.html'}")
        assert page.value("document.documentElement.scrollWidth") <= width
        assert page.value("getComputedStyle(document.querySelector('.card')).borderRadius") == "10px"  # its style
        assert page.value("document.scripts.length") == 0
        assert page.value("document.querySelectorAll('svg.timeline .takeover').length") == 1
        assert page.requested() == [f"file://{tmp_path / 'run.html'}"]
        assert page.complaints() == []
