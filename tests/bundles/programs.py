"""What processes of this suite do."""

from pathlib import Path

from runtime_persist.engine import Engine, run
from runtime_persist.inspector.bundles import importing, open_bundle


def imports(word, url, file, space, page_rows):
    """Import a bundle, and stand still behind every page until the test gives the word."""
    importing._PAGE_ROWS = page_rows
    engine = Engine(url, space=space, auto_setup=False)

    def tell(done, total):
        word.say("stored", done, total)
        word.wait()

    return run(importing.import_bundle(engine, open_bundle(Path(file)), tell)).rows
