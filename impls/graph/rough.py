# ruff: noqa
# mypy: ignore-errors
"""Finds and replaces cores; it becomes modules of its own."""
import itertools, math, re
from dataclasses import dataclass, field
import torch
from torch import Tensor
from impls.graph.tracing import dtype, name, where
from impls.contract import Unsupported
A = torch.ops.aten

def shape(node):
    return tuple(node.meta["val"].shape) if isinstance(node.meta.get("val"), Tensor) else None

# ---------------------------------------------------------------- dimensions
@dataclass(frozen=True)
class Dim:
    """A dimension of a tensor in terms of the scores as the first product gives them (stride), or a width (axis)."""

    size: int
    stride: int = 0
    axis: str = ""


class Odd(Exception):
    """What stands between the products and can't be expressed, with its node."""


def atoms_of(dims, cuts):
    """Split a dimension at the cuts that fall inside it; the largest stride first."""
    if dims.axis:
        return [dims]
    inside = [c for c in sorted(cuts) if dims.stride < c < dims.stride * dims.size]
    edges = [dims.stride, *inside, dims.stride * dims.size]
    out = []
    for low, high in itertools.pairwise(edges):
        if high % low:
            raise Odd(f"layout: {high} is no multiple of {low}")
        out.append(Dim(high // low, low))
    return out[::-1]


def rearrange(graph, node, src, dst, sizes):
    """Emit views that turn a tensor with dims src (true sizes, 1 where it broadcasts) into one with dims dst."""
    cuts = {e for d in (*src, *dst) if not d.axis for e in (d.stride, d.stride * d.size)}
    split = [(a, 1 if n == 1 else a.size) for d, n in zip(src, sizes) for a in atoms_of(d, cuts)]
    split = [(a, n) for a, n in split if a.size != 1 or a.axis]
    targets = [[a for a in atoms_of(d, cuts) if a.size != 1 or a.axis] for d in dst]
    wanted = [a for t in targets for a in t]
    have = {a: n for a, n in split}
    if extra := [a for a, n in have.items() if n != 1 and a not in wanted]:
        raise Odd(f"layout: {extra}")
    present = [a for a, _ in split]
    missing = [a for a in wanted if a not in have]
    node = view(graph, node, [*(n for a, n in split), *(1 for _ in missing)])
    present += missing
    have |= {a: 1 for a in missing}
    order = [present.index(a) for a in wanted] + [i for i, a in enumerate(present) if a not in wanted]
    if order != [*range(len(order))]:
        node = call(graph, A.permute.default, node, order)
    shape_now, final, mixed = [have[a] for a in wanted], [], False
    full = []
    for t in targets:
        ones = {have[a] == 1 for a in t if a.size != 1}
        mixed |= len(ones) > 1
        grow = len(ones) > 1
        full += [a.size if grow else have[a] for a in t]
        final.append(math.prod(a.size if grow else have[a] for a in t))
    if mixed:
        if len(order) > len(wanted):
            node = view(graph, node, shape_now)
        node = call(graph, A.expand.default, node, full)
    return view(graph, node, final)


def call(graph, target, *args, **kwargs):
    node = graph.call_function(target, args, kwargs)
    with torch.no_grad():
        real = [on_meta(a) if isinstance(a, torch.fx.Node) else a for a in args]
        val = target(*real, **kwargs) if isinstance(target, torch._ops.OpOverload) else None
    node.meta["val"] = val
    return node


def on_meta(node):
    v = node.meta["val"]
    return torch.empty(tuple(v.shape), dtype=v.dtype, device="meta")


def view(graph, node, size):
    size = [*map(int, size)]
    return node if shape(node) == tuple(size) else call(graph, A.reshape.default, node, size)


# ---------------------------------------------------------------- products
@dataclass
class Product:
    """A product of two tensors by the labels of their dimensions."""

    node: object
    left: object
    right: object
    of_left: list
    of_right: list
    out: list
    scale: float = 1.0
    added: object = None
    beta: float = 1.0


def product(node):
    n = name(node) if node.op == "call_function" else ""
    a = node.args
    if n in ("matmul", "bmm", "mm", "linear", "baddbmm"):
        scale, added, beta = 1.0, None, 1.0
        if n == "baddbmm":
            scale, beta = float(node.kwargs.get("alpha", 1)), float(node.kwargs.get("beta", 1))
            added, left, right = a[0] if beta else None, a[1], a[2]
        else:
            left, right = a[:2]
        ls, rs = len(shape(left)), len(shape(right))
        if n == "linear":
            if len(a) > 2 and a[2] is not None:
                added = a[2]
            lead = [f"b{i}" for i in range(ls - 2)] + ["n"] * (ls > 1)
            return Product(node, left, right, [*lead, "d"], ["m", "d"], [*lead, "m"], 1.0, added)
        if ls < 2 or rs < 2:
            return None
        lead = [f"b{i}" for i in range(max(ls, rs) - 2)]
        return Product(node, left, right, [*lead[len(lead) - ls + 2:], "n", "d"], [*lead[len(lead) - rs + 2:], "d", "m"],
                       [*lead, "n", "m"], scale, added, beta)
    if n == "einsum" and len(a[1]) == 2:
        eq = a[0].replace(" ", "")
        ins, _, out = eq.partition("->")
        if not _:
            return None
        left, right = ins.split(",")
        dots = []
        for part, t in ((left, a[1][0]), (right, a[1][1])):
            dots.append(len(shape(t)) - len(part.replace("...", "")) if "..." in part else 0)
        def letters(part, number):
            head, _, tail = part.partition("...")
            e = [f".{i}" for i in range(max(dots))][max(dots) - number:] if "..." in part else []
            return [*head, *e, *tail]
        l, r, o = letters(left, dots[0]), letters(right, dots[1]), letters(out, max(dots))
        if any(len(set(x)) < len(x) for x in (l, r, o)) or (set(l) ^ set(r)) - set(o):
            return None
        return Product(node, *a[1], l, r, o)
    return None


VIEWS = {"view", "_unsafe_view", "_reshape_alias", "reshape", "permute", "transpose", "t", "expand", "unsqueeze",
         "squeeze", "alias", "flatten", "unflatten", "movedim", "mT", "numpy_T", "slice", "select", "swapaxes", "detach",
         "split_with_sizes", "split", "view_as", "expand_as", "swapdims", "squeeze.dim", "adjoint", "T", "moveaxis"}
COPIES = {"clone", "_to_copy", "to", "contiguous", "nan_to_num", "type_as", "float", "alias", "lift_fresh_copy", "detach"}
SOFTMAX = {"softmax", "_softmax", "_safe_softmax"}
DROPOUT = {"dropout", "native_dropout"}
LOWEST = -1000.0


@dataclass
class Core:
    """A core: its products, softmax, the terms on the way, and after `replace` what computes it now."""

    first: object
    softmax: object
    last: object
    terms: list = field(default_factory=list)
    scale: float = 1.0
    dropout: float = 0.0
    q: object = None
    k: object = None
    v: object = None
    mask: object = None
    shapes: tuple = ()
    fused: bool = False
    used: list = field(default_factory=list)
    kind: str = "unfused"


@dataclass
class Unknown:
    """A softmax that belongs to no known core."""

    softmax: object
    why: str


class Reader:
    """Follows the result of one product to a softmax and a second product."""

    def __init__(self, prod):
        self.p = prod
        sizes = {}
        for labels, t in ((prod.of_left, prod.left), (prod.of_right, prod.right)):
            for l, s in zip(labels, shape(t)):
                sizes[l] = max(sizes.get(l, 1), s)
        self.sizes = sizes
        out = [sizes[l] for l in prod.out]
        self.strides = {l: math.prod(out[i + 1:]) for i, l in enumerate(prod.out)}
        self.layout = torch.empty(out, device="meta")
        self.numel = self.layout.numel()
        self.terms = []  # (kind, value, dims)
        if prod.added is not None:
            self.terms.append(("add", (prod.added, prod.beta), self.dims()))
        self.scale = prod.scale
        self.softmax = None
        self.layouts = [self.dims()]
        self.dropout = 0.0
        self.extra = None
        self.exp = self.sum = None

    def dims(self, layout=None):
        layout = self.layout if layout is None else layout
        return tuple(Dim(s, st if s > 1 else 1) for s, st in zip(layout.shape, layout.stride()))


def aligned(layout, term):
    """Return the shape of a term padded with ones to the layout's dimensions."""
    s = tuple(shape(term))
    return (1,) * (layout.dim() - len(s)) + s


def depends(node, on, memo):
    """Whether a node is computed from another one."""
    stack, seen = [node], set()
    while stack:
        n = stack.pop()
        if n is on:
            return True
        if n in seen:
            continue
        seen.add(n)
        stack += n.all_input_nodes
    return False


def follow(prod):
    """Yield Core or Unknown for each way of a product's result through a softmax to a second product."""
    node = prod.node
    start = Reader(prod)
    todo = [(node, start)]
    seen = set()
    start.at, start.since = {node: start}, -1
    order = start.order = {n: i for i, n in enumerate(node.graph.nodes)}
    start.changed = {}
    for n in node.graph.nodes:
        if n.op == "call_function" and name(n) == "copy" and is_mutable(n) and order[n] > order[node]:
            start.changed.setdefault(root(n), []).append(order[n])
    results = []
    while todo:
        at, r = todo.pop()
        start.at[at] = r
        for user in at.users:
            if (at, user, r.since) in seen:
                continue
            if order[user] < r.since or any(r.since < c < order[user] for c in start.changed.get(root(at), ())):
                continue
            seen.add((at, user, r.since))
            try:
                step(at, user, r, todo, results)
            except Odd as odd:
                results.append(("odd", r, user, str(odd)))
    return results


def branch(r, **changes):
    new = object.__new__(Reader)
    new.__dict__.update(r.__dict__)
    new.terms = list(r.terms)
    new.layouts = list(r.layouts)
    new.__dict__.update(changes)
    return new


def step(at, user, r, todo, results):
    n = name(user)
    if r.softmax is not None:
        p = product(user)
        if p is not None and (p.left is at or p.right is at):
            results.append(("core", r, p, at))
            return
    if user.op == "output" or n in ("amax", "max", "sum", "logsumexp", "size", "sym_size"):
        if n == "sum" and r.exp is at:
            todo.append((user, branch(r, sum=user)))
        return
    if "getitem" in n:
        if name(at) in ("native_dropout",) and user.args[1] == 0:
            todo.append((user, r))
        return
    if n in SOFTMAX:
        if r.softmax is not None:
            raise Odd("a second softmax")
        dim = user.args[1] % r.layout.dim()
        todo.append((user, branch(r, softmax=user, softmax_dims=r.dims(), softmax_dim=dim, layouts=[*r.layouts, r.dims()])))
        return
    if n == "exp" and r.softmax is None:
        todo.append((user, branch(r, exp=user)))
        return
    if n == "div" and r.exp is not None and r.softmax is None:
        other = user.args[1]
        if user.args[0] is at and name(other) in ("sum", "add", "clamp") and depends(other, r.exp, None):
            s = other if name(other) == "sum" else other.args[0]
            dim = (s.args[1] if isinstance(s.args[1], int) else s.args[1][0]) % r.layout.dim()
            todo.append((user, branch(r, softmax=user, softmax_dims=r.dims(), softmax_dim=dim,
                                      layouts=[*r.layouts, r.dims()])))
        return
    if n in DROPOUT:
        p, train = user.args[1], user.args[2]
        if r.softmax is None and train and p:
            raise Odd("dropout before the softmax")
        todo.append((user, branch(r, dropout=p if train else 0.0)))
        return
    if n == "copy" and is_mutable(user):
        if user.args[1] is not at:
            return
        base = root(user)
        old = r.at.get(user.args[0]), r.at.get(base)
        if None in old or r.softmax is not None or old[0].layout.numel() != old[1].layout.numel():
            raise Odd("a change of some scores in place")
        if tuple(old[0].layout.stride()) != tuple(r.layout.stride()):
            raise Odd("scores in another order")
        new = branch(r, layout=old[1].layout, since=r.order[user])
        todo.append((base, new))
        todo.append((user, new))
        for m, o in [*r.at.items()]:
            if m is not base and root(m) is base and o.layout.numel() == r.layout.numel():
                todo.append((m, branch(r, layout=o.layout, since=r.order[user])))
        return
    if n in COPIES and user.args[0] is at:
        todo.append((user, r))
        return
    if n in VIEWS and user.args[0] is at:
        args = [r.layout if a is at else a for a in user.args]
        if any(isinstance(a, torch.fx.Node) for a in args):
            args = [torch.empty(shape(a), device="meta") if isinstance(a, torch.fx.Node) else a for a in args]
        try:
            if "view" in n or n == "reshape":
                new = r.layout.view(args[1] if n != "view_as" else shape(user))
            else:
                new = user.target(*args, **user.kwargs)
        except RuntimeError:
            raise Odd(f"{n}: a shape in another order") from None
        if not isinstance(new, Tensor):
            raise Odd(f"{n}: parts of the scores")
        extra = r.extra
        if new.numel() != r.layout.numel():
            if n == "slice" and r.softmax is None:
                r.at[user] = branch(r, layout=new)
            if extra is not None and n == "slice" and r.softmax is not None:
                extra = ("dropped", *extra)
            elif n == "expand":
                raise Odd("expand of scores")
            else:
                raise Odd(f"{n}: some scores apart from others")
        todo.append((user, branch(r, layout=new, layouts=[*r.layouts, r.dims(new)], extra=extra)))
        return
    if r.softmax is not None:
        raise Odd(f"{n} on the weights")
    args = user.args
    if n in ("add", "sub"):
        place = 0 if args[0] is at else 1
        other = args[1 - place]
        alpha = float(user.kwargs.get("alpha", args[2] if len(args) > 2 else 1))
        signs = {"add": (1.0, alpha), "sub": (1.0, -alpha)}[n]
        new = scaled(r, signs[place])
        if isinstance(other, torch.fx.Node) and isinstance(other.meta.get("val"), Tensor):
            if depends(other, r.p.node, None):
                s = aligned(r.layout, other)
                key = [d for d in range(r.layout.dim()) if s[d] == 1]
                if not (row_statistic(other) and key):
                    raise Odd(f"{n} of something computed from the scores")
                new.terms.append(("row", other, r.dims()))
            else:
                new = grown(new, other)
                new.terms.append(("add", (other, signs[1 - place]), new.dims(), user, 1 - place))
        todo.append((user, new))
        return
    if n in ("mul", "div", "mul_scalar"):
        place = 0 if args[0] is at else 1
        other = args[1 - place]
        if n == "div" and place:
            raise Odd("division by scores")
        if isinstance(other, torch.fx.Node):
            if depends(other, r.p.node, None):
                raise Odd(f"{n} by something computed from the scores")
            new = grown(branch(r), other)
            new.terms.append((n, other, new.dims(), user, 1 - place))
        else:
            new = scaled(r, 1 / other if n == "div" else float(other), user, 1 - place)
        todo.append((user, new))
        return
    if n in ("masked_fill", "where"):
        if n == "masked_fill":
            mask, value, shows = args[1], args[2], False
            ok = args[0] is at
        else:
            ok = args[0] is not at and len(args) > 2
            shows = ok and args[1] is at
            mask, value = args[0], args[2 if shows else 1]
        if not ok or depends(mask, r.p.node, None):
            raise Odd(f"{n} by a condition on the scores")
        new = grown(branch(r), mask)
        new.terms.append(("hide", (mask, value, shows), new.dims(), user, 0 if n == "where" else 1))
        todo.append((user, new))
        return
    if n == "neg":
        todo.append((user, scaled(r, -1.0)))
        return
    if n == "cat" and len(args[0]) == 2 and args[0][0] is at:
        other, dim = args[0][1], (args[1] if len(args) > 1 else 0) % r.layout.dim()
        if depends(other, r.p.node, None):
            raise Odd("cat of several products")
        size = list(r.layout.shape)
        size[dim] += shape(other)[dim]
        new = torch.empty_strided(size, r.layout.stride(), device="meta")
        todo.append((user, branch(r, layout=new, extra=(other, dim, r.dims()), layouts=[*r.layouts])))
        return
    raise Odd(n)


def scaled(r, factor, user=None, place=1):
    new = branch(r, scale=r.scale * factor)
    if factor != 1.0:
        new.terms.append(("times", factor, (), user, place))
    return new


def row_statistic(node):
    while name(node) in ("detach", "alias", "clone", "to", "_to_copy") or "getitem" in name(node):
        node = node.args[0]
    return name(node) in ("amax", "max", "logsumexp")


def grown(r, other):
    s = torch.broadcast_shapes(r.layout.shape, shape(other))
    if math.prod(s) != r.layout.numel():
        raise Odd("a term that makes more scores")
    layout = r.layout.broadcast_to(s)
    return branch(r, layout=layout, layouts=[*r.layouts, r.dims(layout)])


FUSED = re.compile(r"_scaled_dot_product_(?!.*backward)\w*attention\w*")


def find(gm):
    """Return the cores and unknown softmaxes of a graph."""
    cores, failed, done, big = [], {}, set(), {}
    for node in gm.graph.nodes:
        if node.op != "call_function":
            continue
        n = name(node)
        if n == "scaled_dot_product_attention" or FUSED.search(n) or "flex_attention" in n:
            cores.append(Core(node, node, node, fused=True, kind=n))
            continue
        p = product(node)
        if p is None or shape(node) is None:
            continue
        for kind, r, *rest in follow(p):
            if kind == "core":
                last, weights = rest
                try:
                    cores.append(made(r, last, weights))
                    done.add(r.softmax)
                except Odd as odd:
                    failed.setdefault(r.softmax, str(odd))
            elif kind == "odd":
                user, why = rest
                for s in next_softmaxes(user) if r.softmax is None else [r.softmax]:
                    if n != "linear" or r.softmax is not None:
                        if s not in failed or r.numel == math.prod(shape(s)) or big.get(s) is None:
                            failed[s] = f"{why} at {where(user)}"
                            big[s] = True if r.numel == math.prod(shape(s)) else None
    unknown = []
    for node in gm.graph.nodes:
        if node.op == "call_function" and (name(node) in SOFTMAX or name(node) == "logsumexp") and node not in done:
            unknown.append(Unknown(node, failed.get(node) or reason(node)))
    return once(cores), unknown


def once(cores):
    """Leave those whose weights go to one last product; the same last product once."""
    seen, out = set(), []
    for c in cores:
        if c.last not in seen:
            seen.add(c.last)
            out.append(c)
    return out


def next_softmaxes(node, most=60):
    """The softmaxes that follow a node soon."""
    stack, seen, out = [node], set(), []
    while stack and len(seen) < most:
        n = stack.pop(0)
        if n in seen or n.op != "call_function":
            continue
        seen.add(n)
        if name(n) in SOFTMAX:
            out.append(n)
            continue
        if product(n) is None or n is node:
            stack += [*n.users]
    return out


def reason(node):
    """Say what a softmax is over, if it is in no way that was followed."""
    stack, seen = [*node.all_input_nodes], set()
    while stack and len(seen) < 400:
        n = stack.pop(0)
        if n in seen:
            continue
        seen.add(n)
        if n.op == "call_function" and product(n) is not None and name(n) != "linear":
            return f"over a product at {where(n)}, whose result goes no way that is known"
        if n.op == "call_function" and name(n) in ("linear", "addmm", "convolution", "conv2d"):
            return "over a layer's output: no attention, or a gate"
        stack += n.all_input_nodes
    return "over no product"


def made(r, last, weights):
    """Check that the softmax runs over keys and the last product over them; choose the canonical dimensions."""
    p = r.p
    kd = r.softmax_dims[r.softmax_dim]
    keys = r.softmax_dim
    # which operand has the softmax's dimension alone
    exclusive = {"left": [l for l in p.of_left if l not in p.of_right], "right": [l for l in p.of_right if l not in p.of_left]}
    m = None
    for side, labels in exclusive.items():
        for l in labels:
            full = r.sizes[l] + (shape(r.extra[-3])[r.extra[-2]] if r.extra else 0)
            if full == kd.size and (r.strides[l] == kd.stride or kd.size == 1):
                m, k_side = l, side
    if m is None:
        raise Odd("a softmax over another dimension")
    q_side = "left" if k_side == "right" else "right"
    q_labels, k_labels = (p.of_left, p.of_right) if q_side == "left" else (p.of_right, p.of_left)
    own = [l for l in p.out if l in exclusive[q_side]]
    if not own and not exclusive[q_side]:
        raise Odd("no dimension of queries")
    nl = own[-1]
    d = [l for l in p.of_left if l in p.of_right and l not in p.out]
    if not d:
        raise Odd("no contracted dimension")
    # last product
    w_labels, v_labels = (last.of_left, last.of_right) if last.left is weights else (last.of_right, last.of_left)
    v = last.right if last.left is weights else last.left
    w_dims = dict(zip(w_labels, r.dims()))
    contracted = [l for l in w_labels if l in v_labels and l not in last.out]
    if len(contracted) != 1:
        raise Odd("a last product over several dimensions")
    cd = w_dims[contracted[0]]
    if (cd.size, cd.stride) != (r.sizes[m], r.strides[m]) and cd.size != 1:
        if not (r.extra and cd.size == r.sizes[m] + shape(r.extra[-3])[r.extra[-2]]):
            raise Odd("a last product over another dimension")
    dv = [l for l in v_labels if l not in w_labels]
    if len(dv) != 1:
        raise Odd("values of several widths")
    # canonical dims
    N, M = Dim(r.sizes[nl], r.strides[nl]), Dim(r.sizes[m], r.strides[m])

    def lead_of(dims):
        return sorted((x for x in dims if x.size > 1 and not (x.stride in (N.stride, M.stride) and x.size in (N.size, M.size, kd.size))
                       and not inside(x, N) and not inside(x, M)), key=lambda x: -x.stride)
    options = [lead_of(ds) for ds in [r.layouts[0], *r.layouts[1:]]]
    lead = next((o for o in options if len(o) == 2), None) or max(options, key=lambda o: (math.prod(x.size for x in o), len(o)))
    return CoreRead(r, p, last, nl, m, d, dv[0], contracted[0], N, M, lead, q_side, v, v_labels, w_dims, weights)


def inside(x, of):
    return of.stride <= x.stride and x.stride * x.size <= of.stride * of.size and x.size > 1


@dataclass
class CoreRead:
    r: object
    p: object
    last_p: object
    nl: str
    m: str
    d: list
    dv: str
    cl: str
    N: Dim
    M: Dim
    lead: list
    q_side: str
    v_node: object
    v_labels: list
    w_dims: dict
    weights: object
    fused: bool = False
    kind: str = "unfused"

    first = property(lambda s: s.p.node)
    softmax = property(lambda s: s.r.softmax)
    last = property(lambda s: s.last_p.node)
    dropout = property(lambda s: s.r.dropout)

    @property
    def used(self):
        """Nodes that use the weights besides the last product."""
        return [u for u in self.softmax.users if u not in (self.last, self.weights) and not path(u, self.last)]

    def emit(self, graph, attend):
        r, p = self.r, self.p
        q, k = (p.left, p.right) if self.q_side == "left" else (p.right, p.left)
        ql, kl = (p.of_left, p.of_right) if self.q_side == "left" else (p.of_right, p.of_left)
        D = Dim(math.prod(r.sizes[x] for x in self.d), axis="d")

        def operand(node, labels, row):
            dims = []
            for l in labels:
                dims.append(Dim(r.sizes[l], axis="d" if len(self.d) == 1 else f"d{self.d.index(l)}") if l in self.d
                            else Dim(r.sizes[l], r.strides[l]))
            ds = [D] if len(self.d) == 1 else [Dim(r.sizes[l], axis=f"d{i}") for i, l in enumerate(self.d)]
            out = rearrange(graph, node, dims, [*self.lead, row, *ds], shape(node))
            return view(graph, out, [*shape(out)[:len(self.lead) + 1], D.size])

        lead_sizes = [x.size for x in self.lead]
        q4, k4 = operand(q, ql, self.N), operand(k, kl, self.M)
        V = Dim(shape(self.v_node)[self.v_labels.index(self.dv)], axis="v")
        vdims = [self.M if l == self.cl else V if l == self.dv else self.w_dims[l] for l in self.v_labels]
        v4 = rearrange(graph, self.v_node, vdims, [*self.lead, self.M, V], shape(self.v_node))
        compute = dtype(v4)
        # terms
        mask, scale = None, p.scale
        for kind, value, dims, *_ in r.terms:
            if kind == "times":
                scale *= value
                mask = None if mask is None else call(graph, A.mul.Tensor, mask, value)
            elif kind == "add":
                node, weight = value
                t = self.placed(graph, node, dims)
                if self.over_keys(t):
                    t = t if weight == 1 else call(graph, A.mul.Tensor, t, weight)
                    mask = t if mask is None else call(graph, A.add.Tensor, mask, t)
            elif kind == "hide":
                m, fill, shows = value
                t = self.placed(graph, m, dims)
                if dtype(t) != torch.bool:
                    t = call(graph, A.to.dtype, t, torch.bool)
                zero = call(graph, A.zeros_like.default, t, dtype=compute) if mask is None else mask
                if shows:
                    t = call(graph, A.logical_not.default, t)
                if isinstance(fill, torch.fx.Node):
                    fill = graph.call_function(A.masked_fill.Tensor, (zero, t, fill))
                    fill.meta["val"] = zero.meta["val"]
                    mask = fill if fill.meta["val"].shape == torch.broadcast_shapes(shape(zero), shape(t)) else fill
                    mask.meta["val"] = torch.empty(torch.broadcast_shapes(shape(zero), shape(t)), dtype=dtype(zero), device="meta")
                else:
                    if fill > LOWEST:
                        raise Odd(f"scores that become {fill}")
                    fill = fill if math.isinf(fill) else max(fill, torch.finfo(compute).min)
                    mask = call(graph, A.masked_fill.Scalar, zero, t, fill)
            elif kind in ("mul", "div"):
                t = self.placed(graph, value, dims)
                if self.over_keys(t):
                    raise Odd("a factor that differs from key to key")
                op = A.mul.Tensor if kind == "mul" else A.div.Tensor
                t = t if len(shape(t)) else t
                q4 = call(graph, op, q4, t)
                mask = None if mask is None else call(graph, op, mask, t)
        if r.extra:
            q4, k4, v4, mask = self.with_sink(graph, q4, k4, v4, mask, lead_sizes)
        # [B, H, ., .]
        full = [*lead_sizes]
        def four(t, rows):
            s = shape(t)
            want = [*full, *s[-2:]]
            if tuple(want) != s:
                t = call(graph, A.expand.default, t, want)
            n = len(full)
            if n == 0:
                return view(graph, t, [1, 1, *s[-2:]])
            if n == 1:
                return view(graph, t, [full[0], 1, *s[-2:]])
            return view(graph, t, [math.prod(full[:-1]), full[-1], *s[-2:]])
        q4, k4, v4 = (four(t, None) for t in (q4, k4, v4))
        if mask is not None:
            s = list(shape(mask))
            n = len(full)
            if n <= 1:
                mask = view(graph, mask, [*(s[:1] if n else [1]), 1, *s[-2:]])
            elif n > 2:
                if any(x != 1 for x in s[:n - 1]):
                    mask = call(graph, A.expand.default, mask, [*full[:-1], *s[n - 1:]])
                    s = list(shape(mask))
                mask = view(graph, mask, [math.prod(s[:n - 1]), *s[n - 1:]])
            if dtype(mask) != compute and dtype(mask) != torch.bool:
                mask = call(graph, A.to.dtype, mask, compute)
        q4, k4 = (t if dtype(t) == compute else call(graph, A.to.dtype, t, compute) for t in (q4, k4))
        o = graph.call_function(attend, (q4, k4, v4, scale), {} if mask is None else {"attn_mask": mask})
        o.meta["val"] = torch.empty([*shape(q4)[:3], V.size], dtype=compute, device="meta")
        self.shapes = tuple(shape(t) for t in (q4, k4, v4)) + ((shape(mask),) if mask is not None else ())
        self.scale = scale
        # back
        o = view(graph, o, [*full, self.N.size, V.size])
        out_dims, final = [], shape(self.last)
        for l, size in zip(self.last_p.out, final):
            out_dims.append(V if l == self.dv else self.w_dims[l] if l in self.w_dims else Dim(size, axis="?"))
        o = rearrange(graph, o, [*self.lead, self.N, V], out_dims, shape(o))
        o = view(graph, o, final)
        if dtype(o) != dtype(self.last):
            o = call(graph, A.to.dtype, o, dtype(self.last))
        return o

    def placed(self, graph, node, dims):
        s = shape(node)
        s = (1,) * (len(dims) - len(s)) + s
        node = view(graph, node, s)
        dims = [Dim(self.M.size, d.stride) if d.stride == self.M.stride and d.size > self.M.size else d for d in dims]
        return rearrange(graph, node, dims, [*self.lead, self.N, self.M], s)

    def over_keys(self, t):
        s = shape(t)
        return len(s) > 0 and s[-1] != 1

    def with_sink(self, graph, q4, k4, v4, mask, lead):
        """A column that is no product: a key of zeros, a value of zeros, and a bias."""
        extra, dim, dims = self.r.extra[-3:]
        if self.r.extra[0] != "dropped":
            raise Odd("columns beside the scores that take part in the last product")
        size = shape(extra)[dim]
        key = [Dim(size, self.M.stride) if i == dim else x for i, x in enumerate(dims)]
        s = shape(extra)
        # move: same dims with one key
        rest = [Dim(size, axis="k") if i == dim else x for i, x in enumerate(dims)]
        e = rearrange(graph, extra, rest, [*self.lead, self.N, Dim(size, axis="k")], s)
        k4 = call(graph, A.constant_pad_nd.default, k4, [0, 0, 0, size], 0.0)
        v4 = call(graph, A.constant_pad_nd.default, v4, [0, 0, 0, size], 0.0)
        base = [*(x for x in shape(e)[:-1]), self.M.size]
        if mask is None:
            zero = call(graph, A.new_zeros.default, e, base)
        else:
            both = torch.broadcast_shapes(shape(mask)[:-1], shape(e)[:-1])
            zero = call(graph, A.expand.default, mask, [*both, self.M.size])
            e = call(graph, A.expand.default, e, [*both, size])
        if dtype(e) != dtype(zero):
            e = call(graph, A.to.dtype, e, dtype(zero))
        mask = call(graph, A.cat.default, [zero, e], -1) if False else cat(graph, [zero, e])
        return q4, k4, v4, mask


def cat(graph, nodes):
    node = graph.call_function(A.cat.default, (nodes, -1))
    node.meta["val"] = torch.cat([on_meta(n) for n in nodes], -1)
    return node


def path(a, b, most=40):
    stack, seen = [a], set()
    while stack and len(seen) < most:
        n = stack.pop(0)
        if n is b:
            return True
        if n not in seen:
            seen.add(n)
            if product(n) is None:
                stack += [*n.users]
    return False


def emit_fused(core, graph, attend):
    node, a, kw = core.last, core.last.args, core.last.kwargs
    if core.kind != "scaled_dot_product_attention":
        raise Odd(f"fused operator {core.kind}")
    names = [x.name for x in node.target._schema.arguments]
    got = {**dict(zip(names, a)), **kw}
    q, k, v = (got[x] for x in ("query", "key", "value"))
    scale = got.get("scale")
    scale = shape(q)[-1] ** -0.5 if scale is None else scale
    core.dropout = got.get("dropout_p") or 0.0
    options = {}
    if got.get("attn_mask") is not None:
        options["attn_mask"] = got["attn_mask"]
    if got.get("is_causal"):
        options["mask"] = "causal"
    if got.get("enable_gqa"):
        options["enable_gqa"] = True
    final, lead = shape(node), shape(q)[:-2]
    if len(shape(q)) != 4:
        def four(t):
            s = shape(t)
            return view(graph, t, [*((1,) * (4 - len(s))), *s] if len(s) < 4 else [math.prod(s[:-3]), *s[-3:]])
        q, k, v = map(four, (q, k, v))
        if "attn_mask" in options and len(shape(options["attn_mask"])) > 2:
            mk = options["attn_mask"]
            options["attn_mask"] = four(mk if len(shape(q)) == 4 and len(shape(mk)) <= 4 else mk)
    o = graph.call_function(attend, (q, k, v, scale), options)
    o.meta["val"] = torch.empty([*shape(q)[:-1], shape(v)[-1]], dtype=dtype(q), device="meta")
    core.shapes, core.scale = tuple(shape(t) for t in (q, k, v)), scale
    return view(graph, o, final)


def replace(gm, attend):
    """Replace every core by a call of attend; return what was replaced, and what was not with the reason."""
    cores, unknown = find(gm)
    done, failed = [], []
    for core in cores:
        before = len(gm.graph.nodes)
        marker = {*gm.graph.nodes}
        try:
            with gm.graph.inserting_before(core.last):
                o = emit_fused(core, gm.graph, attend) if core.fused else core.emit(gm.graph, attend)
        except Odd as odd:
            for n in reversed([*gm.graph.nodes]):
                if n not in marker and not n.users:
                    gm.graph.erase_node(n)
            failed.append((core, str(odd)))
            continue
        same = [m for m in gm.graph.nodes if m.op == "call_function" and root(m) is core.last]
        if any(is_mutable(m) for m in same):
            with gm.graph.inserting_after(o):
                o = gm.graph.call_function(A.clone.default, (o,))
                o.meta["val"] = core.last.meta["val"]
        core.last.replace_all_uses_with(o, delete_user_cb=lambda u: u is not o)
        done.append(core)
    dead_code(gm.graph)
    gm.graph.lint()
    gm.recompile()
    return done, failed, unknown


def root(node):
    """Return the node whose memory a view, or a change in place, has."""
    while node.op == "call_function" and node.all_input_nodes and (name(node) in VIEWS or is_mutable(node)):
        node = node.args[0]
    return node


def is_mutable(node):
    return isinstance(node.target, torch._ops.OpOverload) and node.target._schema.is_mutable


def dead_code(graph):
    """Remove what nothing needs; a change in place only if nothing reads that memory later."""
    order = {n: i for i, n in enumerate(graph.nodes)}
    for n in reversed([*graph.nodes]):
        if n.op != "call_function" or n.users or "set_grad" in str(n.target) or "autocast" in str(n.target):
            continue
        if is_mutable(n):
            base = root(n)
            if base.op != "call_function":
                continue
            same = [m for m in graph.nodes if m.op == "call_function" and root(m) is base]
            if any(order[u] > order[n] for m in same for u in m.users):
                continue
        graph.erase_node(n)


