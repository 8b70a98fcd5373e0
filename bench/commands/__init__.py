"""The commands of `python -m bench`, a module each.

The first line of a module's docstring is the help of its command. `add_arguments(parser)` adds its arguments;
`run(arguments)` does it and returns the exit status. `run` raises WrongRequest for a request that is wrong, and
NotComparable for results that can't be compared.
"""

NAMES = ("list", "show", "compare", "plot", "scaling", "profile", "summarise", "duel", "selfcheck")
"""The commands, in the order of the help."""

FINE, BAD, WRONG, NOT_COMPARABLE = 0, 1, 2, 3
"""The exit statuses: fine, something measured is bad, the request is wrong, the results are not comparable."""
