"""What is to be measured: points, cases, grids and sweep files."""
