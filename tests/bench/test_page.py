"""The page of the measurements says what the kept results say."""

from bench.report import page


def test_the_page_is_drawn_from_the_kept_results():
    _, _, rest = page.PAGE.read_text().partition(page.BEGIN)
    drawn, _, _ = rest.partition(page.END)
    assert drawn.strip() == page.generated(page.kept()).strip(), "run: python -m bench page"
