"""The read side: plans that only read. They never decide a write."""
