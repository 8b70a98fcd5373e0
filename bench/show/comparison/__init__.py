"""What is shown of a comparison of two runs."""
