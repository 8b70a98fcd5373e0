"""Who was measured beside whom: company shares a process's memory, caches and clock, and can shift a ratio."""

import pandas as pd

from bench.plan.case import POINT_COLUMNS


def strangers(base: pd.DataFrame, new: pd.DataFrame) -> tuple[list[str], list[str]]:
    """Return the implementations that only BASE, and those that only NEW, measured at a point that both measured.

    The speed-up of sdpa was seen to be 1.15 in two runs beside manual, stepwise and online, and 1.20 and 1.21 in two
    beside manual, online and two compiled layers: three processes each, all in the same ten minutes.
    """
    point = list(POINT_COLUMNS)
    in_base, in_new = (table.loc[table["status"] == "ok", [*point, "implementation"]] for table in (base, new))
    shared = in_base[point].merge(in_new[point], on=point).drop_duplicates()
    sides = (in_base.merge(shared, on=point), in_new.merge(shared, on=point))
    both = sides[0].merge(sides[1], how="outer", on=[*point, "implementation"], indicator=True)
    only_base, only_new = (
        sorted(both.loc[both["_merge"] == side, "implementation"].unique()) for side in ("left_only", "right_only")
    )
    return only_base, only_new
