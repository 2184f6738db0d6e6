"""One tick: cut, write down, run, deliver, commit."""
