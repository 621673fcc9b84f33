"""Alembic migrations. A revision is named major.minor: a newer minor only adds, a newer major changes."""
