"""What commands that measure share: the options of a sweep, and its progress."""
