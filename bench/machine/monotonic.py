"""The clock by which a run tells how long something takes, and waits; tests set it by hand.

What waits for a process or times a call itself asks the system.
"""

import time

now_s = time.monotonic
"""`now_s()` returns the seconds since any moment."""

sleep = time.sleep
"""`sleep(seconds)` waits."""
