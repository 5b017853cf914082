"""The sampler's definitions once more: one row, float64, plain loops, written from `shard.proto` and not from the code.

`distribution` says how likely each token is; `chi_square` says how far draws may be from that.
"""

import math

import numpy as np

MASK = 0xFFFFFFFF


def mix(x):
    x = ((x ^ x >> 16) * 0x85EBCA6B) & MASK
    x = ((x ^ x >> 13) * 0xC2B2AE35) & MASK
    return x ^ x >> 16


def is_favoured(previous, token, gamma):
    """The documented hash of a pair, with whole numbers."""
    spread = previous * 15485863 & MASK
    first, second = mix(spread ^ 0x85EBCA6B), mix(spread ^ 0xC2B2AE35)
    bits = mix(mix(token * 0x9E3779B1 & MASK ^ first) ^ second)
    return ((bits >> 9) + 0.5) / 2**23 < gamma


def adjusted(logits, row, prompt, generated):
    """Logits after every step that also holds for greedy rows."""
    scores = [float(x) for x in logits]
    for token, bias in zip(row.bias_ids.tolist(), row.biases.tolist(), strict=True):
        scores[token] += bias
    if len(generated) < row.min_tokens:
        for token in row.end_ids.tolist():
            scores[token] = -math.inf
    tokens = prompt + generated
    for token in range(len(scores)):
        if row.watermark_delta and is_favoured(tokens[-1], token, row.watermark_gamma):
            scores[token] += row.watermark_delta
        if token in tokens and math.isfinite(scores[token]):
            scores[token] *= row.repetition_penalty ** (1 if scores[token] < 0 else -1)
        scores[token] -= row.frequency_penalty * generated.count(token)
        scores[token] -= row.presence_penalty * (token in generated)
    return np.array(scores)


def distribution(logits, row, prompt, generated):
    """The probability of each token."""
    scores = adjusted(logits, row, prompt, generated)
    if row.temperature == 0:
        return np.eye(len(scores))[scores.argmax()]
    weights = np.exp((scores - scores.max()) / row.temperature)
    if row.top_k and row.top_k < len(weights):
        weights[weights < sorted(weights)[-row.top_k]] = 0
    p = weights / weights.sum()
    if row.top_p < 1:
        gone = 0.0
        for token in np.argsort(p, kind="stable")[:-1]:
            gone += p[token]
            if gone <= 1 - row.top_p:
                weights[token] = 0
        p = weights / weights.sum()
    weights[p < row.min_p * p.max()] = 0
    p = weights / weights.sum()
    if row.typical_p < 1:
        kept = [token for token in range(len(p)) if p[token] > 0]
        entropy = -sum(p[token] * math.log(p[token]) for token in kept)
        kept.sort(key=lambda token: abs(-math.log(p[token]) - entropy))
        mass = 0.0
        for at, token in enumerate(kept):
            if at and mass >= row.typical_p:
                weights[token] = 0
            mass += p[token]
    return weights / weights.sum()


def chi_square(found, expected):
    """Standard deviations (by Wilson and Hilferty) of counts (tokens,) above what chance explains.

    Infinite when a token came that cannot come. Cells of fewer than 8 expected draws are pooled.
    """
    expected = expected * found.sum()
    if found[expected == 0].any():
        return math.inf
    small = expected < 8
    cells = [*zip(found[~small], expected[~small], strict=True), (found[small].sum(), expected[small].sum())]
    cells = [(count, mean) for count, mean in cells if mean > 0]
    freedom = len(cells) - 1
    if freedom == 0:
        return 0.0
    statistic = sum((count - mean) ** 2 / mean for count, mean in cells)
    spread = 2 / (9 * freedom)
    return ((statistic / freedom) ** (1 / 3) - (1 - spread)) / math.sqrt(spread)
