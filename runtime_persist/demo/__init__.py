"""The demo: a real agent whose workers are killed and stopped in the middle of a payment."""
