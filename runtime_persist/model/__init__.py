"""Pure facts: ids, states, transitions, guards, records, limits. No input or output."""
