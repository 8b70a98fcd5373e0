"""Points, grids and sweep files, and what they refuse."""
