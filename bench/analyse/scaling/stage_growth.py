"""The share of each stage in the time of all, along a series of tokens."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from bench.analyse.scaling.series import TOKENS, by, groups
from bench.store.profile import Profile

Shares = dict[str, float]
"""Shares by stage, in the order of a call; they sum to 1."""


@dataclass(frozen=True)
class StageGrowth:
    """Profiles of one implementation that differ in their tokens alone, fewest first, with the shares of each."""

    profiles: tuple[Profile, ...]
    shares: tuple[Shares, ...]

    @property
    def places(self) -> tuple[int, ...]:
        """The tokens of each profile."""
        return tuple(profile.case.point.num_tokens for profile in self.profiles)

    @property
    def stages(self) -> tuple[str, ...]:
        """All stages, in the order of a call."""
        return tuple(dict.fromkeys(name for shares in self.shares for name in shares))

    def share_of(self, stages: Iterable[str]) -> tuple[float, ...]:
        """Return the sum of the shares of some stages at each place."""
        wanted = tuple(stages)
        return tuple(sum(shares.get(name, 0.0) for name in wanted) for shares in self.shares)


def stage_growths(profiles: Iterable[Profile]) -> Iterator[StageGrowth]:
    """Yield each series of tokens among the profiles that have stages; a single point is none."""
    rows = [{**each.case.columns(), "profile": each} for each in profiles if each.stages]
    for of_one in by(rows, "implementation").values():
        for group in groups(of_one, TOKENS):
            ordered = [row["profile"] for row in sorted(group, key=lambda row: int(row[TOKENS.column]))]
            yield StageGrowth(tuple(ordered), tuple(map(shares_by_stage, ordered)))


def shares_by_stage(profile: Profile) -> Shares:
    """Return the share of each stage, its forward and backward part added, in the time of all stages."""
    whole_s = sum(stage.time_s for stage in profile.stages)
    shares = dict.fromkeys((stage.name for stage in profile.stages), 0.0)
    for stage in profile.stages:
        shares[stage.name] += stage.time_s / whole_s
    return shares
