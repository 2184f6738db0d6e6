"""A data directory in an object store: files put once, the book as a log, one owner at a time."""
