"""Whether a model can be divided among ranks, and into how many. Knows descriptions only: needs neither torch nor
weights, so a split that cannot work is refused before anything is loaded.
"""

from text_generation_server.models.spec import DecoderSpec
from text_generation_server.refusal import Refusal


def check_divisible(spec: DecoderSpec, world_size: int) -> None:
    """Whether `world_size` ranks can share a model.

    Raises:
        Refusal: heads, key/value heads or hidden features do not divide.
    """
    for layer in spec.layers:
        numbers = {
            "attention heads": layer.mixer.heads,
            "key/value heads": layer.mixer.kv_heads,
            "MLP features": layer.mlp.hidden,
        }
        for what, number in numbers.items():
            if number % world_size:
                good = [n for n in range(1, min(numbers.values()) + 1) if all(x % n == 0 for x in numbers.values())]
                raise Refusal(
                    f"the model's {number} {what} cannot be divided among {world_size} shards",
                    f"set --num-shard to one of: {', '.join(map(str, good))}",
                )
