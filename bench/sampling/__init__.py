"""How samples are taken: rounds in random order, until the ratios are known."""
