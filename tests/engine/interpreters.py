"""Interpreters of environments that aren't there: each sets variables for the scripted server, and is our Python."""

import sys
from pathlib import Path


def interpreter(folder: Path, name: str, **variables: str) -> str:
    """Write a program that runs Python with these variables, and return its path."""
    path = folder / name
    settings = " ".join(f"{key}={value}" for key, value in variables.items())
    path.write_text(f'#!/bin/sh\n{settings} exec "{sys.executable}" "$@"\n')
    path.chmod(0o755)
    return str(path)


def two(folder: Path, b_s: str = "1e-3") -> tuple[str, str]:
    """Return the interpreters of two environments; a sample takes 1 ms in A and the given seconds in B."""
    a = interpreter(folder, "python-a", TEST_TORCH="2.0", TEST_TIMING_S="1e-3")
    return a, interpreter(folder, "python-b", TEST_TORCH="2.1", TEST_TIMING_S=b_s)
