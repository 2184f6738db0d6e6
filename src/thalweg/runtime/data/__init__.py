"""The data plane: publications over Arrow Flight, and streams that are fed by them."""
