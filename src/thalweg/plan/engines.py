"""What may compute queries at a node, by name. Light: every command knows these."""

SHARED, NATIVE, NO_ENGINE = "shared", "native", "none"
ENGINES = (SHARED, NATIVE, NO_ENGINE)
