"""The layers, each written once and plainly: the reference that every implementation must equal."""
