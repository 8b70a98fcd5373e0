"""What is shown in the terminal."""
