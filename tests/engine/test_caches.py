"""The compiler's caches are those of one case each."""

from pathlib import Path

from bench.engine.caches import WARM, Caches


def test_a_new_cache_begins_as_a_copy_of_that_of_servers(tmp_path: Path) -> None:
    """Each has a folder of its own, which keeps what is compiled."""
    caches = Caches(tmp_path)
    (caches.path(WARM) / "fx").mkdir(parents=True)
    (caches.path(WARM) / "fx" / "kernel.so").write_bytes(b"warm")
    assert (caches.path("case") / "fx" / "kernel.so").read_bytes() == b"warm"
    (caches.path("case") / "own.so").touch()
    assert (caches.path("case") / "own.so").exists()
    assert not (caches.path("other") / "own.so").exists()
