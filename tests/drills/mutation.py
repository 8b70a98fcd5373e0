"""Do the tests find mistakes? Changes the source at random places, and runs the tests until one fails.

`python -m tests.drills.mutation 80` prints a line for each mutant, killed or survived, and the counts by package.
"""

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]

FROM_END_TO_END = ("tests/commands", "tests/test_cli.py", "tests/test_cases.py")
"""The tests that run commands, after the tests of the mutant's package."""

NO_TESTS = 5
"""The exit status of pytest if a file has no test that was asked for."""

LIMIT_S = 600
"""A mutant whose tests take longer is killed: it hangs."""

SWAPS: dict[type[ast.AST], ast.operator | ast.cmpop | ast.boolop] = {
    ast.Add: ast.Sub(), ast.Sub: ast.Add(), ast.Mult: ast.Div(), ast.Div: ast.Mult(), ast.FloorDiv: ast.Mult(),
    ast.Lt: ast.GtE(), ast.GtE: ast.Lt(), ast.Gt: ast.LtE(), ast.LtE: ast.Gt(), ast.Eq: ast.NotEq(),
    ast.NotEq: ast.Eq(), ast.In: ast.NotIn(), ast.NotIn: ast.In(), ast.Is: ast.IsNot(), ast.IsNot: ast.Is(),
    ast.And: ast.Or(), ast.Or: ast.And(),
}  # fmt: skip
"""Operators, each with the one that takes its place."""

Node = ast.expr | ast.stmt


def mutants(source: str) -> Iterator[tuple[Node, str]]:
    """Yield the nodes of a source that can be changed, each with the text in its place."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.BinOp(ast.expr() as left, op, right) if type(op) in SWAPS and not isinstance(left, ast.Constant):
                yield node, f"({ast.unparse(ast.BinOp(left, SWAPS[type(op)], right))})"  # type: ignore[arg-type]
            case ast.Compare(left, [op], [right]):
                yield node, f"({ast.unparse(ast.Compare(left, [SWAPS[type(op)]], [right]))})"  # type: ignore[list-item]
            case ast.BoolOp(op, values):
                yield node, f"({ast.unparse(ast.BoolOp(SWAPS[type(op)], values))})"  # type: ignore[arg-type]
            case ast.Constant(bool() as value):
                yield node, str(not value)
            case ast.Constant(int() | float() as value):
                yield node, repr(value + 1)
            case ast.If(test=test) | ast.IfExp(test=test):
                yield test, f"(not ({ast.unparse(test)}))"
            case ast.Expr(ast.Call()) | ast.AugAssign() | ast.Raise():
                yield node, "pass"


def changed(source: str, node: Node, text: str) -> str:
    """Return a source with a text in place of a node."""
    lines = source.encode().splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    begin = starts[node.lineno - 1] + node.col_offset
    end = starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
    whole = b"".join(lines)
    return (whole[:begin] + text.encode() + whole[end:]).decode()


def drawn(count: int, seed: int) -> list[tuple[Path, Node, str]]:
    """Return mutants drawn at random among all."""
    files = sorted(path.relative_to(ROOT) for top in ("bench", "impls") for path in (ROOT / top).rglob("*.py"))
    every = [(file, *each) for file in files for each in mutants((ROOT / file).read_text(encoding="utf-8"))]
    return random.Random(seed).sample(every, count)


def package_of(file: Path) -> str:
    """Return the name of the folder of tests for a file."""
    top, *names = file.parts
    return "impls" if top == "impls" else names[0] if len(names) > 1 else "commands"


def is_killed(root: Path, file: Path) -> bool:
    """Return whether a test fails: of the file's own, of its package, or of the runs from end to end, in this order."""
    folder = Path("tests", package_of(file))
    own = [str(path.relative_to(root)) for path in (root / folder).rglob(f"test_{file.stem}.py")]
    workers = ["-n", str((os.cpu_count() or 1) + 1), "--dist", "worksteal"]
    command = [sys.executable, "-m", "pytest", "-xq", "-p", "no:cacheprovider", "-m", "not toolchain"]
    for words in (own, [*workers, str(folder)], [*workers, *FROM_END_TO_END]):
        if words and _fails([*command, *words], root):
            return True
    return False


def _fails(command: list[str], root: Path) -> bool:
    """Return whether a command fails, or hangs."""
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, cwd=root, stdout=quiet, stderr=quiet, start_new_session=True) as tests:
        try:
            return tests.wait(LIMIT_S) not in (0, NO_TESTS)
        except subprocess.TimeoutExpired:
            os.killpg(tests.pid, 9)
            return True


def main() -> None:
    """Run the drill."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    counts = Counter[tuple[str, bool]]()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "copy")
        shutil.copytree(ROOT, root, ignore=shutil.ignore_patterns(".git", ".nox", ".venv*", "__pycache__"))
        for file, node, text in drawn(asked.count, asked.seed):
            source, package, began_s = (ROOT / file).read_text(encoding="utf-8"), package_of(file), time.monotonic()
            (root / file).write_text(changed(source, node, text), encoding="utf-8")
            killed = is_killed(root, file)
            (root / file).write_text(source, encoding="utf-8")
            counts[package, killed] += 1
            was, now = (" ".join(each.split()) for each in (ast.unparse(node), text))
            said = f"{'killed' if killed else 'SURVIVED':8} {time.monotonic() - began_s:4.0f} s"
            print(f"{said} {file}:{node.lineno}: {was} -> {now}", flush=True)
    for package in sorted({name for name, _ in counts}):
        print(f"{package}: {counts[package, True]} killed, {counts[package, False]} survived")


if __name__ == "__main__":
    main()
