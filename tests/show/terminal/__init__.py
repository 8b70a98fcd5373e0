"""Tests of output in the terminal."""
