"""What the README shows runs as it stands there, and prints what it says."""

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def test_the_readme_code_runs_from_top_to_bottom(tmp_path):
    code = "\n".join(re.findall(r"```python\n(.*?)```", README, re.DOTALL))
    script = tmp_path / "readme.py"
    script.write_text(code)
    done = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "You asked: why?",
        "{'order_id': 'order-7', 'cents': 4200}",
        "succeeded",
        "Order 9 is paid.",
        "True",
    ]


def test_the_readme_shows_what_run_why_says_of_its_queued_run(tmp_path):
    code = "\n".join(re.findall(r"```python\n(.*?)```", README, re.DOTALL))
    (shown,) = re.findall(r"```text\n(queued .*?)```", README, re.DOTALL)
    (tmp_path / "app.py").write_text(code)
    subprocess.run([sys.executable, "app.py"], cwd=tmp_path, capture_output=True, check=True)

    def run(*arguments):
        cli = [sys.executable, "-m", "runtime_persist.cli", *arguments, "--url", "sqlite:///agents.db"]
        return subprocess.run(cli, cwd=tmp_path, capture_output=True, text=True, check=True).stdout

    (record,) = json.loads(run("run", "list", "--thread", "t3", "--json"))
    said = run("run", "why", record["run_id"])

    def without_ids_and_times(text):
        text = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "RUN", text)
        return [re.sub(r"\d{4}-\S+ \S+Z \(.* ago\)", "WHEN", line.rstrip()) for line in text.splitlines()]

    assert without_ids_and_times(said) == without_ids_and_times(shown)


def test_the_readme_worker_command_line_finishes_the_queued_run(tmp_path):
    code = "\n".join(re.findall(r"```python\n(.*?)```", README, re.DOTALL))
    (tmp_path / "app.py").write_text(code + '\nregistry = {"shop": shop}\n')
    cli = [sys.executable, "-m", "runtime_persist.cli"]

    def run(*arguments):
        return subprocess.run([*cli, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False)

    url = ("--url", "sqlite:///agents.db")
    worked = run("worker", "app:registry", "--until-idle", *url)
    assert worked.returncode == 0, worked.stderr
    listed = run("run", "list", "--thread", "t3", "--json", *url)
    assert '"shown": "succeeded"' in listed.stdout, listed.stdout + listed.stderr
    run_id = re.search(r'"run_id": "([^"]+)"', listed.stdout)[1]
    inspected = run("inspect", run_id, *url)
    assert "charge" in inspected.stdout


def test_the_readme_names_only_make_targets_that_exist():
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"^make (\w+)", README, re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_links_of_the_markdown_files_lead_somewhere():
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]:
        for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / link).exists(), f"{page.name}: {link}"


def test_paths_named_in_the_architecture_exist():
    text = (ROOT / "ARCHITECTURE.md").read_text()
    for path in re.findall(r"`((?:[a-z_]+/)+[a-z_]+\.(?:py|md))(?::[^`]*)?`", text):
        assert (ROOT / path).exists() or (ROOT / "runtime_persist" / path).exists(), path
