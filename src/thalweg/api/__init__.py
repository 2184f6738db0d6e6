"""The service's REST interface and the Python interface."""
