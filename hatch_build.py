"""How an installed package is made of a checkout: `attention_bench` holds all, and no other name is importable."""

import re
import shutil
import subprocess
import tempfile
import tomllib
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

PACKAGE = "attention_bench"
PARTS = ("bench", "impls")
EXTRAS = ("models", "runtimes", "profile", "gpu-kernels")
"""The dependency groups that are extras of the package."""

WHOLE = re.compile(r"^( *)import (bench|impls)$", re.MULTILINE)
FROM = re.compile(r"^( *from )(?=(?:bench|impls)\b)", re.MULTILINE)
"""The two forms in which modules of ours import one another; `import bench.plan` is none of them."""


def rewritten(source: str) -> str:
    """Return the source of a module with its imports of ours under the name of the package."""
    return FROM.sub(rf"\1{PACKAGE}.", WHOLE.sub(rf"\1from {PACKAGE} import \2", source))


def write_package(root: Path, folder: Path) -> None:
    """Write the package of a checkout into a folder, with the commit if git knows it."""
    shutil.copytree(root / PACKAGE, folder, ignore=shutil.ignore_patterns("__pycache__"))
    for part in PARTS:
        shutil.copytree(root / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
        for file in (folder / part).rglob("*.py"):
            file.write_text(rewritten(file.read_text(encoding="utf-8")), encoding="utf-8")
    words = ["git", "describe", "--always", "--abbrev=12", "--exclude=*", "--dirty=+"]
    if (root / ".git").exists() and shutil.which("git"):
        done = subprocess.run(words, cwd=root, capture_output=True, text=True, check=False)
        if commit := done.stdout.strip():
            (folder / "commit.txt").write_text(commit, encoding="utf-8")


class Package(BuildHookInterface[Any]):
    """Fills the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Hand the package to the builder; an editable install has the checkout itself."""
        if version != "editable":
            self._folder = tempfile.TemporaryDirectory()
            write_package(Path(self.root), Path(self._folder.name, PACKAGE))
            build_data["force_include"][str(Path(self._folder.name, PACKAGE))] = PACKAGE


class Dependencies(MetadataHookInterface):
    """Makes dependencies and extras of the dependency groups, so that each list is declared once."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the package's dependencies, those of the group `bench`, and its extras."""
        groups = tomllib.loads(Path(self.root, "pyproject.toml").read_text(encoding="utf-8"))["dependency-groups"]
        metadata["dependencies"] = of_group(groups, "bench")
        metadata["optional-dependencies"] = {
            name: [each for each in of_group(groups, name) if each not in metadata["dependencies"]] for name in EXTRAS
        }


def of_group(groups: dict[str, list[Any]], name: str) -> list[str]:
    """Return the packages of a dependency group and of those that it includes."""
    each = ([entry] if isinstance(entry, str) else of_group(groups, entry["include-group"]) for entry in groups[name])
    return [package for packages in each for package in packages]
