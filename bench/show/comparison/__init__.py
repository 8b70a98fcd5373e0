"""The output of comparisons of two runs, and of the two sides of a duel."""
