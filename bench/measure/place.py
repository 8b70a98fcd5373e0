"""Where in a tensor something is, in words."""

from collections.abc import Sequence

from torch import Tensor

AXES = {3: ("item", "token", "channel"), 4: ("item", "channel", "row", "column")}
"""The axes of an output by their number: tokens, or maps."""

OF_HEADS = ("item", "head", "token", "channel")
"""The axes of queries, keys, values and the output of a core."""


def place(wrong: Tensor, judged: Tensor, items: Sequence[int], axes: Sequence[str] = ()) -> str:
    """Return where the wrong elements of an output for these items are: `items 0 to 3, tokens 64 to 196`.

    `axes` are their names if they aren't the usual ones. An axis is left out if all that is judged of it is wrong.
    """
    words = []
    for axis, name in enumerate(axes or AXES.get(wrong.dim(), ())):
        others = [each for each in range(wrong.dim()) if each != axis]
        indices = wrong.any(dim=others).nonzero().flatten().tolist()
        all_judged = judged.any(dim=others).nonzero().flatten().tolist()
        if indices == all_judged:
            continue
        indices = [items[index] for index in indices] if axis == 0 else indices
        first, last = indices[0], indices[-1]
        if len(indices) == 1:
            words.append(f"{name} {first}")
        elif last - first + 1 == len(indices):
            words.append(f"{name}s {first} to {last}")
        else:
            words.append(f"{len(indices)} of {len(all_judged)} {name}s, the first is {first}")
    return ", ".join(words)
