"""What the suite promises, each promise a test; the folders mirror the packages."""
