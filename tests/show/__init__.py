"""Lines, tables and pictures of made-up results."""
