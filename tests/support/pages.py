"""The code of a documentation page, executed: it prints what its comments say."""

import re
import subprocess
import sys
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def code_of(text: str) -> str:
    """All Python of a page, from top to bottom."""
    return "\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL))


def promised(code: str) -> list[str]:
    """What the comments behind ``print`` say."""
    return re.findall(r"^ *print\(.*\)  # (.*)$", code, re.MULTILINE)


def printed(code: str, where: Path) -> list[str]:
    """The lines that the code prints, executed in a process of its own in a folder."""
    script = where / "page.py"
    script.write_text(code)
    done = subprocess.run([sys.executable, script], cwd=where, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def check_prints(text: str, where: Path) -> None:
    """The code of a page prints something, and exactly what it promises."""
    code = code_of(text)
    assert promised(code)
    assert printed(code, where) == promised(code)
