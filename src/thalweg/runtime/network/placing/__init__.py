"""From queries to fragments at nodes: planned, compared with what runs, carried out."""
