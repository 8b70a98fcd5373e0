"""The layers and their implementations, held against written formulas."""
