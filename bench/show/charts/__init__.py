"""Pictures as Vega-Lite specifications, a module for each fact: pages show them, and some files are drawn from them."""
