"""The core of attention, one way a file: `attend(q, k, v, scale) -> o` on `[B, H, N, D]`."""
