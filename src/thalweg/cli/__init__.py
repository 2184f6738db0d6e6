"""The `thalweg` command. It starts the service, the console and the experiments."""
