"""What is kept: the book, segments, tables of operator state, SteMs, and their names."""
