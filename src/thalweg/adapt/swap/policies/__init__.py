"""Which link a batch takes where there is a choice: one policy per file."""
