"""Patch embedding, then attention (`impls.layers.patch`)."""

from types import MappingProxyType

from bench.plan.case import Point
from bench.plan.errors import WrongRequest
from bench.plan.layers.layer import Layer, Projection, Values, check_tokens

RGB = 3
"""The channels of an image if a sweep gives no token_len."""


class Patch(Layer):
    """The layer `patch`."""

    name, module = "patch", "layers.patch:PatchAttention"
    meaning = "patch embedding of an image, multi-head self-attention, output projection (AttentionBlock)"
    needs = ("image_size", "patch_size")
    fixed = MappingProxyType({"qkv_bias": True})

    def derive(self, values: Values) -> Values:
        """Return the number of tokens, which are patches."""
        image, patch = values["image_size"], values["patch_size"]
        if image % patch:
            raise WrongRequest(f"image_size = {image} must be divisible by patch_size = {patch}")
        token_len = values.get("token_len", RGB * patch**2)
        if token_len % patch**2:
            raise WrongRequest(
                f"token_len = {token_len} must be a multiple of patch_size² = {patch**2}, the pixels of a patch"
            )
        check_tokens(values, (image // patch) ** 2, f"image_size = {image} with patch_size = {patch},")
        return {"token_len": token_len, "num_tokens": (image // patch) ** 2}

    def projections(self, point: Point) -> tuple[Projection, ...]:
        """Return the embedding and the projections to queries, keys and values, and to the output."""
        tokens, embedded = point.batch * point.num_tokens, point.channels
        of = (point.token_len, embedded), (embedded, 3 * embedded), (embedded, embedded)
        return tuple(Projection(tokens, *each) for each in of)


LAYER = Patch()
