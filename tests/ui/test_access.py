"""Who may do what: names, the token, the cookie, forged requests. The server is a process of its own."""

import re
import socket
import sys

import pytest

from runtime_persist import Runtime
from runtime_persist.cli.main import EXIT_CODES
from runtime_persist.errors import InvalidInput
from runtime_persist.ui.security import TOKEN_CHARS_MIN, Access
from runtime_persist.ui.serving import is_loopback, names
from tests.ui.conftest import TOKEN, in_process, serving

BEARER = {"Authorization": f"Bearer {TOKEN}"}


def status_of(url, run_id):
    with Runtime.open(url) as runtime:
        return runtime.runs.get(run_id).status


@pytest.fixture
def signed_in(acting):
    """The word for forms of a client that has the cookie."""
    answer = acting.post("/sign-in", data={"token": TOKEN, "next": "/fleet"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/fleet")
    return answer


def test_without_allow_actions_nothing_can_be_changed_even_with_a_token(pages, story):
    url, runs = story
    for headers in ({}, BEARER):
        refused = pages.post(f"/runs/{runs['queued']}/cancel", headers=headers)
        assert (refused.status_code, "read-only" in refused.text) == (403, True)
    assert pages.get("/sign-in").status_code == 403
    assert '<form method="post"' not in pages.get(f"/runs/{runs['queued']}").text
    assert status_of(url, runs["queued"]) == "queued"


def test_acting_needs_the_token_in_the_header_or_in_the_cookie_with_the_word_of_the_form(acting, own_story, signed_in):
    url, runs = own_story
    cancel = f"/runs/{runs['queued']}/cancel"
    cookie = acting.cookies
    assert acting.post(cancel, data={"csrf": "x"}).status_code == 403
    acting.cookies = {}
    assert acting.post(cancel).status_code == 401
    assert acting.post(cancel, headers={"Authorization": "Bearer " + TOKEN[:-1]}).status_code == 401
    assert acting.post(cancel, headers={"Authorization": "Basic " + TOKEN}).status_code == 401
    acting.cookies = cookie
    page = acting.get(f"/runs/{runs['queued']}").text
    (word, *_) = re.findall(r'name="csrf" value="([0-9a-f]+)"', page)
    for other in (word[:-1] + ("0" if word[-1] != "0" else "1"), ""):
        assert acting.post(cancel, data={"csrf": other}).status_code == 403
    assert status_of(url, runs["queued"]) == "queued"
    done = acting.post(cancel, data={"csrf": word})
    assert (done.status_code, done.headers["location"]) == (303, f"/runs/{runs['queued']}?done=cancel")
    assert status_of(url, runs["queued"]) == "cancelled"
    retried = acting.post(f"/runs/{runs['failed']}/retry", headers=BEARER)
    assert retried.status_code == 303
    assert status_of(url, re.findall("/runs/([^?]+)", retried.headers["location"])[0]) == "queued"


def test_what_another_site_sends_is_refused_whatever_cookies_the_browser_adds(acting, own_story, signed_in):
    url, runs = own_story
    page = acting.get(f"/runs/{runs['queued']}").text
    word = re.findall(r'name="csrf" value="([0-9a-f]+)"', page)[0]
    for headers in (
        {"Origin": "https://elsewhere.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ):
        for path in (f"/runs/{runs['queued']}/cancel", "/sign-in", "/sign-out"):
            sent = acting.post(path, data={"csrf": word, "token": TOKEN}, headers=headers)
            assert (sent.status_code, "set-cookie" in sent.headers) == (403, False)
    assert status_of(url, runs["queued"]) == "queued"


def test_the_cookie_is_kept_from_scripts_and_other_sites_and_a_forged_one_is_none(acting, signed_in, own_story):
    (cookie,) = signed_in.headers.get_list("set-cookie")
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert TOKEN not in cookie
    name, value = re.findall(r"([^=]+)=([^;]+)", cookie)[0]
    page = f"/runs/{own_story[1]['queued']}"
    assert 'name="csrf"' in acting.get(page).text
    until, mac = value.split(".")
    acting.cookies = {}
    for forged in (f"{int(until) + 9_999}.{mac}", f"{until}.{mac[:-1]}", f".{mac}", "x", ""):
        assert 'name="csrf"' not in acting.get(page, headers={"Cookie": f"{name}={forged}"}).text


def test_a_wrong_token_gives_no_cookie_and_no_way_out_of_the_pages(acting):
    wrong = acting.post("/sign-in", data={"token": "wrong"})
    assert (wrong.status_code, "set-cookie" in wrong.headers) == (401, False)
    for next_ in ("https://elsewhere.example", "//elsewhere.example", "/\\elsewhere.example", "\n/x", ""):
        right = acting.post("/sign-in", data={"token": TOKEN, "next": next_})
        assert right.headers["location"] == "/"
    out = acting.post("/sign-out")
    assert "Max-Age=0" in out.headers["set-cookie"]


def test_another_name_in_the_host_header_gets_nothing(pages):
    port = "8321"
    for host in (f"elsewhere.example:{port}", "127.0.0.1", f"127.0.0.1:{int(port) ^ 1}", "", f"localhost.:{port}"):
        refused = pages.get("/", headers={"Host": host})
        assert refused.status_code in {400, 421}, host
        assert "Runs" not in refused.text
    for host in (f"localhost:{port}", f"LOCALHOST:{port}", f"[::1]:{port}"):
        assert pages.get("/", headers={"Host": host}).status_code == 200


def test_every_answer_has_the_headers_that_keep_a_page_to_itself(pages, story):
    for path in ("/", f"/runs/{story[1]['asked']}", "/nothing", "/static/ui.css", "/sign-in"):
        headers = pages.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"
        assert "server" not in headers


def test_a_form_that_cannot_be_meant_is_refused_in_words(acting, own_story):
    runs = own_story[1]
    for action, run, form, status, said in (
        ("resume", "asked", {"value": "{"}, 400, "not JSON"),
        ("resume", "queued", {"value": "1"}, 409, "ILLEGAL_TRANSITION"),
        ("resolve", "taken over", {}, 400, "whether the call happened"),
        ("resolve", "taken over", {"happened": "no", "operation_id": "x"}, 404, "OPERATION_NOT_FOUND"),
        ("raise-budget", "spent", {"loops": "many"}, 400, "whole number"),
        ("raise-budget", "spent", {"cost_micros": "much"}, 400, "not a number"),
        ("raise-budget", "spent", {"loops": "0"}, 409, "ILLEGAL_TRANSITION"),
        ("dance", "asked", {}, 404, "NOT_FOUND"),
        ("cancel", "asked", {"by": "\0"}, 400, "INVALID_INPUT"),
    ):
        answer = acting.post(f"/runs/{runs[run]}/{action}", data=form, headers=BEARER)
        assert (answer.status_code, said in answer.text) == (status, True), (action, answer.text)
    large = acting.post(f"/runs/{runs['asked']}/resume", content=b"value=" + b"x" * 2_000_000, headers=BEARER)
    assert large.status_code == 400


def test_every_action_does_what_its_command_does(acting, own_story):
    url, runs = own_story
    for action, run, form, status in (
        ("resume", "asked", {"value": '"yes"', "by": "ann"}, "queued"),
        ("resolve", "taken over", {"happened": "yes", "result": '{"paid": true}', "by": "ann"}, "queued"),
        ("raise-budget", "spent", {"loops": "5"}, "queued"),
        ("now", "queued", {}, "queued"),
        ("recover", "left", {}, "lost"),
        ("cancel", "queued", {}, "cancelled"),
    ):
        if action == "resolve":
            page = acting.get(f"/runs/{runs[run]}").text
            (form["operation_id"],) = set(re.findall(r"Operation</dt><dd><code>([^<]+)", page))
        if action == "recover":
            page = acting.get(f"/runs/{runs[run]}").text
            assert acting.post(f"/runs/{runs[run]}/recover", data={"plan": "x"}, headers=BEARER).status_code == 400
            (form["plan"],) = re.findall(r"Plan <code>([^<]+)", page)
        done = acting.post(f"/runs/{runs[run]}/{action}", data=form, headers=BEARER)
        assert done.status_code == 303, done.text
        assert status_of(url, runs[run]) == status, action
        assert acting.get(done.headers["location"], headers=BEARER).status_code == 200
    with Runtime.open(url) as runtime:
        said = [one for one in runtime.runs.events(runs["asked"]) if one.actor_id == "ann"]
    assert said


def test_pages_for_other_machines_need_the_token_for_reading_too(story):
    with in_process(story[0], name="pages.example", private=True, token=TOKEN) as pages:
        for path in ("/", f"/runs/{story[1]['asked']}?live=off", "/fleet", f"/runs/{story[1]['asked']}/news"):
            refused = pages.get(path)
            assert (refused.status_code, "asked" in refused.text) == (303, False)
            assert refused.headers["location"].startswith("/sign-in?next=%2F")
            assert pages.get(path, headers=BEARER).status_code == 200
        assert pages.post(f"/runs/{story[1]['asked']}/cancel", headers=BEARER).status_code == 403
        back = pages.post("/sign-in", data={"token": TOKEN, "next": f"/runs/{story[1]['asked']}?live=off"})
        assert pages.get(back.headers["location"]).status_code == 200


def test_a_server_for_every_address_answers_to_its_name_and_says_the_token_it_made(client, story):
    arguments = ("--host", "0.0.0.0", "--allow-host", "pages.example", "--allow-actions")  # noqa: S104
    with serving(story[0], *arguments) as said:
        assert re.fullmatch("[0-9a-f]{64}", said["token"])
        port = said["url"].rstrip("/").rpartition(":")[2]
        address, bearer = f"http://127.0.0.1:{port}/", {"Authorization": f"Bearer {said['token']}"}
        assert client.get(address, headers={"Host": f"pages.example:{port}"}).status_code == 303
        shown = client.get(address, headers={"Host": f"pages.example:{port}", **bearer})
        assert (shown.status_code, "server" in shown.headers) == (200, False)
        assert client.get(address, headers={"Host": f"another.example:{port}", **bearer}).status_code == 421


def test_what_may_not_be_started_is_said_in_one_line(cli, tmp_path):
    (tmp_path / "short").write_text("short")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        for arguments, said in (
            (["--port", port], "INVALID_INPUT: cannot listen on 127.0.0.1"),
            (["--host", "nowhere.invalid", "--port", "0"], "INVALID_INPUT: cannot listen on nowhere.invalid"),
            (["--host", "0.0.0.0", "--port", "0"], "INVALID_INPUT: 0.0.0.0 is every address"),  # noqa: S104
            (["--allow-actions", "--port", "0", "--token-file", str(tmp_path / "short")], "INVALID_INPUT: a token has"),
            (["--allow-actions", "--token-file", str(tmp_path / "none")], "INVALID_INPUT: the token cannot be read"),
        ):
            done = cli("ui", *arguments)
            assert (done.exit_code, done.stdout) == (EXIT_CODES["invalid"], "")
            assert done.stderr.startswith(said)


def test_without_its_extra_the_command_says_what_to_install(cli, monkeypatch, exported, tmp_path):
    (tmp_path / "run.zip").write_bytes(exported["asked"])
    for name in [one for one in sys.modules if one.startswith("runtime_persist.ui")]:
        monkeypatch.delitem(sys.modules, name)
    for missing in ("jinja2", "starlette", "uvicorn"):
        monkeypatch.setitem(sys.modules, missing, None)
    for arguments in (["ui"], ["bundle", "show", str(tmp_path / "run.zip"), "--html", str(tmp_path / "run.html")]):
        refused = cli(*arguments)
        assert refused.exit_code == EXIT_CODES["invalid"]
        assert "pip install 'runtime-persist[ui]'" in refused.stderr
        assert refused.stderr.startswith("MISSING_DEPENDENCY: ")
    assert not (tmp_path / "run.html").exists()


def test_rules_about_hosts_and_tokens():
    assert [is_loopback(one) for one in ("127.0.0.1", "127.9.9.9", "::1", "localhost", "10.0.0.1", "x", "0.0.0.0")] == [  # noqa: S104
        True, True, True, True, False, False, False,
    ]  # fmt: skip
    assert names("127.0.0.1", 80, []) >= {"localhost", "localhost:80", "[::1]"}
    assert names("10.0.0.1", 8_000, ["a", "b:9"]) >= {"10.0.0.1:8000", "a:8000", "b:9"}
    hosts = frozenset({"localhost:1"})
    with pytest.raises(InvalidInput):
        Access(hosts, actions=True)
    with pytest.raises(InvalidInput):
        Access(hosts, token="x" * (TOKEN_CHARS_MIN - 1))
    access = Access(hosts, actions=True, token=TOKEN)
    assert access.is_token(TOKEN)
    assert not access.is_token(TOKEN + "x")
    assert not access.is_token("\ud800")
    other = Access(hosts, actions=True, token=TOKEN)
    assert not other.is_session(access.session())
