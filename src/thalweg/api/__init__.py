"""What people touch: the Python session and the REST service."""
