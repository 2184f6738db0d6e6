"""The shared engine: SteMs as columnar segments, and delta evaluation of all queries per tick."""
