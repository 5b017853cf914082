"""Turns the plain decoder into one rank's part of it, before weights are loaded.

Walks the declared parameters and follows their `Share`. Attention and MLP are cut by heads and by hidden features, with
one sum at the end of each; the embedding is whole everywhere; the head is cut by vocabulary and its logits gathered.
"""

from dataclasses import replace

from text_generation_server.layers.linear import Linear
from text_generation_server.layers.parameter import Parameter, Share
from text_generation_server.models.decoder import Decoder
from text_generation_server.parallel.collectives import Collectives
from text_generation_server.parallel.divide import check_divisible


def shard_decoder(decoder: Decoder, collectives: Collectives) -> None:
    """Shrink a decoder to this rank's part and plug the collectives in.

    Raises:
        Refusal: see `check_divisible`.
    """
    world = collectives.world_size
    check_divisible(decoder.spec, world)
    for block in decoder.layers:
        block.attention.heads //= world
        block.attention.kv_heads //= world
    for linear in decoder.linears:
        _shard_linear(linear, world)
        if linear.weight.share is Share.ROW:
            linear.reduce = collectives.sum
    head = decoder.head
    _shard_rows(head.linear.weight, world)
    head.first_row = collectives.rank * head.linear.weight.shape[0]
    head.gather = collectives.gather_columns


def _shard_linear(linear: Linear, world: int) -> None:
    if linear.weight.share is Share.ROW:
        assert linear.weight.columns is not None, "a linear layer's weight is a matrix"
        linear.weight.columns //= world
    for parameter in linear.parameters():
        if parameter.share is Share.COLUMN:
            _shard_rows(parameter, world)


def _shard_rows(parameter: Parameter, world: int) -> None:
    """Rounded up: only a vocabulary may not divide, and its last rank's missing rows are zero."""
    parameter.parts = tuple(replace(part, rows=-(-part.rows // world)) for part in parameter.parts)
