"""The console in the browser: what runs where, and how it is doing."""
