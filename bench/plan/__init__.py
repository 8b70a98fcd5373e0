"""The plan of a run: points, cases, grids and sweep files."""
