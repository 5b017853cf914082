"""Percentiles and the one way to print a result. Knows nothing of what was measured."""

import json
import math
from collections.abc import Sequence


def percentile(values: Sequence[float], share: float) -> float | None:
    """The smallest value that `share` (0 to 1) of the values do not pass; `None` of no values."""
    if not values:
        return None
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def milliseconds(seconds: float | None) -> float | None:
    """Seconds as milliseconds with three decimals."""
    return None if seconds is None else round(seconds * 1000, 3)


def report(name: str, **figures: object) -> None:
    """Prints one JSON line."""
    print(json.dumps({"benchmark": name, **figures}), flush=True)
