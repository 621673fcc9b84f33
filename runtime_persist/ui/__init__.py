"""Pages to look at runs: a small server, and the same page of one run as a file. Needs the extra ``ui``.

Nothing is imported here, so that everything else works without that extra: ``app`` is the server, ``file`` the file.
"""
