"""The commands of `python -m bench`, through the front door."""
