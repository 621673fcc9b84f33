"""What commands are made of: guards, receipts, effects, events, and the shape of a command itself."""
