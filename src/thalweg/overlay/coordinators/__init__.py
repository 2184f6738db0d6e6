"""The coordinator tree: `tree.CoordinatorTree` is the protocol; start reading there."""
