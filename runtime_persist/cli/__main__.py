"""``python -m runtime_persist.cli``."""

from __future__ import annotations

from runtime_persist.cli.main import main

if __name__ == "__main__":
    main()
