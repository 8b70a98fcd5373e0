"""The core of attention, one implementation per file: `attend(q, k, v, scale) -> o` on `[B, H, N, D]`."""
