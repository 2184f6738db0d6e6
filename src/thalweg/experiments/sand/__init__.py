"""What the experiments on SAND's placement (6) share."""
