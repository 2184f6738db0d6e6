"""Who has a stream from whom, what is passed on, and how fresh readers are."""
