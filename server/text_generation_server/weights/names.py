"""From the decoder's parameter names to those of a checkpoint, by a family's rules. Reads no file."""

import re

from text_generation_server.layers.parameter import Parameter, Part
from text_generation_server.models.spec import WeightNames

_NUMBER = re.compile(r"(?<=\.)\d+(?=\.)")


def checkpoint_name(names: WeightNames, parameter: Parameter, part: Part) -> str:
    """The checkpoint's name of one part of a parameter. A module without a rule is an error of the family file."""
    module = f"{parameter.module}/{part.name}" if part.name else parameter.module
    numbers = _NUMBER.findall(module)
    pattern = names.modules[_NUMBER.sub("*", module)]
    for number in numbers:
        pattern = pattern.replace("*", number, 1)
    return f"{pattern}.{parameter.leaf}"


def is_ignored(names: WeightNames, name: str) -> bool:
    """Whether a tensor is one of those that nobody needs."""
    return _NUMBER.sub("*", name) in names.ignored
