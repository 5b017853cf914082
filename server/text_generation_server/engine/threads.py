"""How many of torch's threads a step on a CPU uses.

A step of few tokens spends its time in own products, which have threads of their own; what is left for torch are
operations of a few microseconds, and waking a second thread for each takes longer than the work. Large steps are
arithmetic, and use all threads.
"""

import torch


class StepThreads:
    """One thread for steps of at most `few_tokens` tokens, else as many as torch has now."""

    def __init__(self, few_tokens: int):
        self._few_tokens = few_tokens
        self._all = torch.get_num_threads()

    def choose(self, tokens: int) -> None:
        """Set torch's threads for a step of so many tokens."""
        torch.set_num_threads(1 if tokens <= self._few_tokens else self._all)
