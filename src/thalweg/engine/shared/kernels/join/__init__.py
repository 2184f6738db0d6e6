"""MJoin over SteMs: probing orders, and what joins have in common."""
