"""What queries have said: emissions, and the archive of retained ticks."""
