"""Two tables of results against each other."""
