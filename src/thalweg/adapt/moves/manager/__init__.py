"""The distribution manager's side of moves."""
