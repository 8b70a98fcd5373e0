"""Tests of what is shown in the terminal."""
