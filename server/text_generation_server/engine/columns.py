"""Parameters of a step's rows as columns on the host, and the way of one column to the device.

Knows no parameter by name.
"""

import numpy as np
import numpy.typing as npt
import torch

Columns = dict[str, npt.NDArray]
"""Name -> one value a row, (rows,)."""


def column(values: npt.NDArray, like: torch.Tensor) -> torch.Tensor:
    """(rows,) on the host -> (rows, 1) on the device of `like`."""
    return torch.from_numpy(np.ascontiguousarray(values)).to(like.device).unsqueeze(-1)
