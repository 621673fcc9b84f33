"""What the pages need is in the wheel: templates, style sheet, htmx with its licence."""

import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_wheel_has_every_file_of_the_pages(tmp_path):
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    within = set(zipfile.ZipFile(wheel).namelist())
    ours = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "runtime_persist" / "ui").rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    assert {"runtime_persist/ui/static/htmx.min.js", "runtime_persist/ui/static/htmx.LICENSE"} <= ours
    assert sum(path.endswith(".html") for path in ours) > 10
    assert ours <= within
