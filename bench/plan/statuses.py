"""The exit statuses of all commands; `python -m pytest bench` has pytest's own."""

FINE = 0
BAD = 1
"""Something measured is bad."""
WRONG = 2
"""The request is wrong."""
UNMEASURED = 3
"""Something could not be measured, written or compared."""
INTERRUPTED = 130
BROKEN_PIPE = 141
"""The reader of the output is gone, as in `list | head`."""
