"""The floor of a decode step on a GPU: only the linear layers of a model shaped like Llama 3 8B, in bfloat16, in one
CUDA graph. A step of the server cannot be faster than this by plain matrix products; the ratio to it says how much
attention, norms, sampling and the CPU add. Needs PyTorch alone.

    python -m benchmarks.gpu.linears_only --batch 1 64
"""

import argparse
from dataclasses import dataclass

import torch

from benchmarks.reporting import report

WARM_UP, REPEATS = 5, 50


@dataclass(frozen=True)
class Shape:
    """Sizes of the model. Every layer has its own weights, as in the model, so that no cache helps."""

    layers: int = 32
    hidden: int = 4096
    feed_forward: int = 14336
    heads: int = 32
    kv_heads: int = 8
    head_dim: int = 128
    vocabulary: int = 128256

    def linears(self) -> list[tuple[int, int]]:
        """(outputs, inputs) of every linear of a step, in order; query, key and value in one, gate and up in one."""
        attention = self.heads * self.head_dim
        layer = [
            (attention + 2 * self.kv_heads * self.head_dim, self.hidden),
            (self.hidden, attention),
            (2 * self.feed_forward, self.hidden),
            (self.hidden, self.feed_forward),
        ]
        return [*layer * self.layers, (self.vocabulary, self.hidden)]


def step_seconds(weights: list[torch.Tensor], batch: int) -> float:
    """Median time of one replay of the graph."""
    device = weights[0].device
    inputs = {
        size: torch.randn(batch, size, device=device, dtype=weights[0].dtype) for size in {w.shape[1] for w in weights}
    }
    outputs = [torch.empty(batch, weight.shape[0], device=device, dtype=weight.dtype) for weight in weights]

    def run() -> None:
        for weight, output in zip(weights, outputs, strict=True):
            torch.mm(inputs[weight.shape[1]], weight.t(), out=output)

    graph = captured(run)
    times = []
    for _ in range(WARM_UP + REPEATS):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) / 1000)
    return sorted(times[WARM_UP:])[REPEATS // 2]


def captured(run) -> torch.cuda.CUDAGraph:
    """A CUDA graph of a function, captured after a warm-up on a side stream."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        run()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    return graph


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 64], help="sequences in a step")
    options = parser.parse_args()
    shapes = Shape().linears()
    weights = [torch.randn(shape, device="cuda", dtype=torch.bfloat16) for shape in shapes]
    total = sum(weight.numel() * weight.element_size() for weight in weights)
    for batch in options.batch:
        seconds = step_seconds(weights, batch)
        report(
            "linears_only",
            device=torch.cuda.get_device_name(),
            dtype="bfloat16",
            batch=batch,
            milliseconds=round(seconds * 1000, 3),
            weight_bytes=total,
            gigabytes_per_second=round(total / seconds / 1e9),
        )


if __name__ == "__main__":
    main()
