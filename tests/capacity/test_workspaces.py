"""Directories that attempts work in: never two attempts in one, and nobody's work is thrown away."""

import logging
import math
import subprocess
import threading
from pathlib import Path

import pytest

from runtime_persist import Workspace, current_workspace
from runtime_persist.engine import run as flow
from runtime_persist.engine import worktrees
from runtime_persist.errors import InvalidInput, UnsafeWorkspace
from runtime_persist.worker import RegisteredGraph, Worker
from tests.support.graphs import chain, says


@pytest.fixture(autouse=True)
def somebody(monkeypatch):
    """Git wants to know who commits, and reads nobody's settings."""
    for what in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{what}_NAME", "somebody")
        monkeypatch.setenv(f"GIT_{what}_EMAIL", "somebody@example.org")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")


def git(path, *arguments):
    done = subprocess.run(["git", "-C", str(path), *arguments], check=True, capture_output=True, text=True)  # noqa: S607
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path):
    path = tmp_path / "repository"
    path.mkdir()
    git(path, "init", "--quiet")
    (path / "file.txt").write_text("as committed")
    git(path, "add", ".")
    git(path, "commit", "--quiet", "-m", "first")
    return path


def works(runtime, graph, runs, *, slots=1, **registered):
    """Execute runs of a graph and return their results, or how they failed."""
    graphs = {"g": RegisteredGraph(graph, **registered)}
    for name, one in graphs.items():
        runtime.bind(one.graph, name=name)
    started = [runtime.runs.start("g", {"log": []}) for _ in range(runs)]
    Worker(runtime, graphs, slots=slots, poll_seconds=0.01).run(until_idle=True)
    return [one.record() for one in started]


def trees(repository):
    return git(repository, "worktree", "list", "--porcelain").count("worktree ")


# --- refused at registration, and again before the start --------------------------------------------------------------


@pytest.mark.parametrize("limit", [2, None, math.inf])
def test_a_shared_plain_directory_with_more_than_one_run_at_a_time_is_refused_at_registration(runtime, tmp_path, limit):
    workspace = Workspace(tmp_path)
    with pytest.raises(UnsafeWorkspace, match="share the directory"):
        flow(runtime.register("g", "v", max_concurrency=limit, workspace=workspace))
    assert runtime.runs.list() == []
    flow(runtime.register("g", "v", max_concurrency=1, workspace=workspace))
    with pytest.raises(UnsafeWorkspace):
        runtime.bind(chain({"n": says("x")}), name="g", max_concurrency=2)


def test_it_is_verified_again_before_the_start(runtime, raw, tmp_path):
    graph = chain({"n": says("x")})

    def raised(workspace):
        """Somebody with older code lifts the limit behind the worker's registration."""
        raw.rows("UPDATE rp_graphs SET max_concurrency = NULL")
        return workspace

    registered = RegisteredGraph(graph, max_concurrency=1, workspace=Workspace(tmp_path))
    runtime.bind(graph, name="g")
    run = runtime.runs.start("g", {"log": []})
    worker = Worker(runtime, {"g": registered}, poll_seconds=0.01)
    begin = worker._begin
    worker._begin = lambda *claimed: begin(*raised(claimed))
    worker.run(until_idle=True)
    assert (run.record().status, run.record().error_code) == ("failed", "UNSAFE_WORKSPACE")
    assert "attempt.start_requested" not in {row["type"] for row in raw.rows("SELECT type FROM rp_events")}


@pytest.mark.parametrize("what", ["nothing", "no repository", "no commit", "inside"])
def test_a_workspace_that_cannot_be_isolated_is_refused(runtime, repository, tmp_path, what):
    path = tmp_path / what
    if what != "nothing":
        path.mkdir()
    if what == "no commit":
        git(path, "init", "--quiet")
    if what == "inside":
        path = repository / "folder"
        path.mkdir()
    with pytest.raises(InvalidInput, match="workspace"):
        flow(runtime.register("g", "v", workspace=Workspace(path, isolation="git-worktree")))


@pytest.mark.parametrize(("path", "isolation"), [("relative", "none"), (1, "none"), ("/a", "container")])
def test_what_cannot_be_meant_is_refused(path, isolation):
    with pytest.raises(InvalidInput):
        Workspace(path, isolation=isolation)


# --- one worktree an attempt ------------------------------------------------------------------------------------------


def test_attempts_at_the_same_time_have_worktrees_of_their_own_that_are_removed(runtime, repository, raw):
    both = threading.Barrier(2)
    seen = []

    def node(_):
        place = current_workspace().path
        both.wait(20)
        (place / "file.txt").write_text(place.name)
        both.wait(20)
        seen.append((place, (place / "file.txt").read_text() == place.name))
        git(place, "checkout", "--quiet", "file.txt")
        return {"log": []}

    workspace = Workspace(repository, isolation="git-worktree")
    records = works(runtime, chain({"n": node}), 2, slots=2, max_concurrency=2, workspace=workspace)
    assert [one.status for one in records] == ["succeeded", "succeeded"]
    assert len({place for place, _ in seen}) == 2
    assert all(own for _, own in seen)
    assert (repository / "file.txt").read_text() == "as committed"
    assert (trees(repository), git(repository, "branch", "--list", "runtime_persist/*")) == (1, "")
    assert {row["kind"] for row in raw.rows("SELECT kind FROM rp_domains WHERE state = 'revoked'")} == {"workspace"}


def test_uncommitted_changes_are_kept_and_named(runtime, repository, caplog):
    def node(_):
        (current_workspace().path / "new.txt").write_text("work")
        raise ValueError("no luck")

    workspace = Workspace(repository, isolation="git-worktree")
    with caplog.at_level(logging.WARNING):
        (record,) = works(runtime, chain({"n": node}), 1, workspace=workspace)
    kept = worktrees.path_of(workspace, record.run_id, record.epoch)
    assert (record.status, (kept / "new.txt").read_text()) == ("failed", "work")
    assert str(kept) in caplog.text


def test_commits_are_kept_on_their_branch(runtime, repository, caplog):
    def node(_):
        place = current_workspace().path
        (place / "new.txt").write_text("work")
        git(place, "add", ".")
        git(place, "commit", "--quiet", "-m", "by the agent")
        return {"log": []}

    workspace = Workspace(repository, isolation="git-worktree")
    with caplog.at_level(logging.WARNING):
        (record,) = works(runtime, chain({"n": node}), 1, workspace=workspace)
    branch = f"runtime_persist/{record.run_id}-{record.epoch}"
    assert trees(repository) == 1
    assert git(repository, "log", "-1", "--format=%s", branch) == "by the agent"
    assert branch in caplog.text


def test_what_an_earlier_attempt_left_clean_goes_with_the_next_one(repository):
    workspace = Workspace(repository, isolation="git-worktree")
    clean, dirty = (worktrees.add_worktree(workspace, run_id, 1) for run_id in ("clean", "dirty"))
    (dirty.path / "new.txt").write_text("work")
    for run_id in ("clean", "dirty"):
        worktrees.add_worktree(workspace, run_id, 2)
    assert (clean.path.exists(), dirty.path.exists()) == (False, True)


def test_a_plain_directory_is_handed_to_one_attempt_at_a_time(runtime, tmp_path):
    graph = chain({"n": lambda _: {"log": [str(current_workspace().path)]}})
    runtime.bind(graph, name="g")
    registered = {"max_concurrency": 1, "workspace": Workspace(tmp_path)}
    assert [one.status for one in works(runtime, graph, 2, slots=2, **registered)] == ["succeeded"] * 2
    assert runtime.runs.result(runtime.runs.list()[0].run_id)["log"] == [str(Path(tmp_path).resolve())]


def test_without_a_workspace_there_is_none(runtime):
    (record,) = works(runtime, chain({"n": lambda _: {"log": [current_workspace() is None]}}), 1)
    assert runtime.runs.result(record.run_id)["log"] == [True]
