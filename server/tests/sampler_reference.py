"""What the sampler must do, written plainly: one row at a time, in float64, without the sampler's own code."""

import numpy as np
import torch

from text_generation_server.engine.adjustments import AdjustedRows, Adjustments
from text_generation_server.engine.sampler import History

KINDS = {"top_k": np.int64, "seed": np.uint64, "top_n": np.int64, "raw_logprobs": bool}
RAGGED = ("bias_ids", "biases", "min_tokens", "end_ids")


def columns(*rows):
    """The parameters of rows, a column a field."""
    filled = [{name: value for name, value in vars(row).items() if name not in RAGGED} for row in rows]
    return {name: np.array([row[name] for row in filled], KINDS.get(name, np.float32)) for name in filled[0]}


def history(count, ids=None, prompt=0, length=None):
    """The past of `count` rows: the same lengths for all."""
    ids = torch.zeros(count, 1, dtype=torch.int32) if ids is None else torch.tensor(ids, dtype=torch.int32)
    length = ids.shape[1] if length is None else length
    return History(ids, ids[:, length - 1], np.full(count, length), np.full(count, prompt))


def no_adjustments() -> Adjustments:
    """Nobody asks for a bias."""
    return AdjustedRows().gather(np.zeros(0, np.int64), np.zeros(0, np.int64))


def probabilities(logits, generated, prompt, favoured, options):
    """The exact distribution of the next token.

    `logits` (vocabulary,), `generated` and `prompt` lists of ids, `favoured` (vocabulary,) bool: the watermark's set,
    `options` a dict of `Sampling` fields.
    """
    scores = np.asarray(logits, np.float64).copy()
    for token, bias in zip(options.get("bias_ids", []), options.get("biases", []), strict=True):
        scores[token] += bias
    if len(generated) < options.get("min_tokens", 0):
        scores[options["end_ids"]] = -np.inf
    scores[favoured] += options.get("watermark_delta", 0.0)
    penalty = options.get("repetition_penalty", 1.0)
    for token in set(prompt) | set(generated):
        scores[token] = scores[token] * penalty if scores[token] < 0 else scores[token] / penalty
    for token in set(generated):
        scores[token] -= options.get("frequency_penalty", 0.0) * generated.count(token)
        scores[token] -= options.get("presence_penalty", 0.0)
    return _warped(scores / options["temperature"], options)


def _warped(scores, options):
    p = np.exp(scores - scores.max())
    if options.get("top_k"):
        p[scores < np.sort(scores)[-options["top_k"]]] = 0
    p /= p.sum()
    if options.get("top_p", 1.0) < 1:
        order = np.argsort(p, kind="stable")
        remove = order[np.cumsum(p[order]) <= 1 - options["top_p"]]
        p[remove[remove != order[-1]]] = 0
        p /= p.sum()
    p[p < options.get("min_p", 0.0) * p.max()] = 0
    p /= p.sum()
    if options.get("typical_p", 1.0) < 1:
        p = _typical(p, options["typical_p"])
    return p


def _typical(p, mass):
    with np.errstate(divide="ignore", invalid="ignore"):
        surprise = -np.log(p)
        distance = np.abs(surprise - np.nansum(p * surprise))
    order = np.argsort(distance, kind="stable")
    before = np.cumsum(p[order]) - p[order]
    keep = order[(before < mass) | (np.arange(len(p)) == 0)]
    p = np.where(np.isin(np.arange(len(p)), keep), p, 0)
    return p / p.sum()
