"""Whole models as layers: where they come from, how to look at them, and the settings of their attention."""
