"""The server of a machine with a made-up GPU; its processes compute on the CPU."""

import pytest

from bench.measure import server
from tests.make.simulated_gpu import InRealTime

if __name__ == "__main__":
    InRealTime().put(pytest.MonkeyPatch())
    server.main()
