"""The layers and their implementations, held against the formulas of layers.md."""
