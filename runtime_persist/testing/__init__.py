"""The shipped test kit: a real PostgreSQL server for tests, and a proxy that can hold or cut its traffic."""
