"""Say in words where the wrong elements of a tensor are."""

from collections.abc import Sequence

from torch import Tensor

AXES = {3: ("item", "token", "channel"), 4: ("item", "channel", "row", "column")}
"""The names of an output's axes by their number: for tokens, or for maps."""

OF_HEADS = ("item", "head", "token", "channel")
"""The names of the axes of a core's inputs and output."""


def place(wrong: Tensor, judged: Tensor, items: Sequence[int], axes: Sequence[str] = ()) -> str:
    """Return where the wrong elements of an output for these items are: `items 0 to 3, tokens 64 to 196`.

    `axes` are names other than the usual ones. An axis is left out if all judged positions on it are wrong.
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
