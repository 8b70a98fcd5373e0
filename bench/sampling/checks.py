"""The inputs whose outputs are compared with those of the reference, by the names that messages have."""

NORMAL, PEAKED = "normal input", "peaked input"
"""Before the rounds; a peaked softmax is the harder one."""

TIMED, AFTERWARDS = "in a timed call", "on fresh values after the rounds"
"""In a call of the rounds, and after them."""

SHIFTS = 4096
"""The number of other inputs that can be cut out of the random values, each shifted by one more value."""

Values = int | tuple[int, ...]
"""Where the values of a check come from: how far they are shifted, or for a timed input the key of its numbers, the key
of its timing, and its place among the inputs of the timing."""

LONG_SCORES = 1 << 24
"""The most attention scores of an item that the reference holds at once. A sequence with more is long."""

ROWS, PART_ROWS = 512, 64
"""The rows of each item of a long sequence that are compared: if 1 of 100 is wrong, 99.4 % of draws find it.
Of each item of a timed call it is PART_ROWS: they find the half that was left out, and 1 of 20 in 96 % of draws."""
