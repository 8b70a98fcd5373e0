"""How samples are taken: rounds in random order, for some seconds."""
