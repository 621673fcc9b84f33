"""Pages with one program: its code runs and prints what its comments say."""

import pytest

from tests.support.pages import DOCS, check_prints


@pytest.mark.parametrize("page", ["workers.md", "domains.md", "runs.md", "capacity.md", "operations.md", "budgets.md"])
def test_its_code_prints_what_it_promises(page, tmp_path):
    check_prints((DOCS / page).read_text(), tmp_path)
