"""The inputs whose outputs are compared with those of the reference, by the names that messages have."""

NORMAL, PEAKED = "normal input", "peaked input"
"""Before the rounds; a peaked softmax is the harder one."""

TIMED, AFTERWARDS = "in a timed call", "on fresh values after the rounds"
"""In a call of the rounds, and after them."""

SHIFTS = 4096
"""The number of other inputs that can be cut out of the random values, each shifted by one more value."""

LONG_SCORES = 1 << 24
"""The most attention scores of an item that the reference holds at once. A sequence with more is long."""

ROWS = 512
"""The rows of each item of a long sequence that are compared: if 1 of 100 is wrong, 99.4 % of draws find it."""
