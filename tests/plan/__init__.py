"""Points, grids and sweep files, and their refusals."""
