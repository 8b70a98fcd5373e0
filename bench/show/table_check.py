"""What the check of a table of choices says."""

from collections.abc import Iterator, Sequence

from bench.analyse import table_check
from bench.analyse.table_check import TABLE, Checked
from bench.show.blocks import GOOD, WARNING, Block, Column, Lines, Table, right
from bench.show.text import counted, more, names, share_of
from bench.stats.estimates import Interval

RAN = {True: "yes", False: "NO", None: "?"}


def blocks(of: Sequence[Checked]) -> Iterator[Block]:
    """Yield the sentences, and a row for each shape."""
    rules = table_check.rules(of)
    labels = names([each.point for each in of])
    yield Lines([*_sentences(of, rules)], GOOD if table_check.fidelity(of) == 1 else WARNING)
    yield Table(
        [
            Column("shape", lambda each: labels[each.point]),
            Column("the table names", lambda each: each.core),
            Column("it ran", lambda each: RAN[each.ran_it]),
            *(_regret(rule) for rule in rules),
        ],
        of,
    )


def _regret(rule: str) -> Column:
    return Column(f"{_called(rule)} costs", lambda each: regret(each.regrets[rule]), right)


def _called(rule: str) -> str:
    return "the table" if rule == TABLE else f"always {rule}"


def _sentences(of: Sequence[Checked], rules: Sequence[str]) -> Iterator[str]:
    where = counted(len(of), "shape")
    for rule in rules:
        mean, most = table_check.mean(of, rule), table_check.most(of, rule)
        yield (
            f"{_called(rule)[0].upper()}{_called(rule)[1:]} costs {regret(mean)} on average over {where}, "
            f"at most {more(1 + most.high)} at one of them."
        )
    known = [each for each in of if each.ran_it is not None]
    ran = sum(each.ran_it is True for each in known)
    yield f"The program ran what the table names at {share_of(ran, len(known))} shapes."


def regret(of: Interval) -> str:
    """Return a regret with its bounds: `1.3% [0, 2.9]`."""
    value, low, high = (f"{100 * end:.1f}".removesuffix(".0") for end in (of.value, of.low, of.high))
    return f"{value}% [{low}, {high}]"
