"""The clock by which a run measures durations and waits; tests replace it.

Code that waits for processes or times calls uses the system's clock directly.
"""

import time

now_s = time.monotonic
"""`now_s()` returns the seconds since an arbitrary moment."""

sleep = time.sleep
"""`sleep(seconds)` waits."""
