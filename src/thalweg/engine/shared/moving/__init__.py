"""A query's state goes from one engine to another: frozen at an instant, exported, adopted."""
