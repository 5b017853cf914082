"""What every family module says about one tensor. Data only."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from text_generation_server.gguf.reader import TensorInfo


@dataclass(frozen=True)
class Weight:
    """A tensor of the file under its Hugging Face name; `rows` reorders the decoded values, when needed."""

    name: str
    tensor: TensorInfo
    rows: Callable[[np.ndarray], np.ndarray] | None
