"""Adapters to frameworks; independent of one another."""
