"""The commands of `python -m bench`, as a user calls them."""
