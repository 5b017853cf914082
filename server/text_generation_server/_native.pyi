"""The native module of the wheel: the shard's end of the shard protocol, and the entry points of the Rust programs.

The gRPC server runs on its own thread, so that `Health` answers while Python computes. Python sees plans as packed
numpy arrays and hands packed arrays back. Written in Rust under `router/src/python/`.
"""

from collections.abc import Iterator
from typing import final

import numpy as np
import numpy.typing as npt

U32 = npt.NDArray[np.uint32]
F32 = npt.NDArray[np.float32]

@final
class CpuPool:
    """The threads that share a product: `threads`, the caller's among them. Idle ones sleep.

    Raises:
        OSError: the system gives no more threads.
    """

    def __init__(self, threads: int) -> None: ...

@final
class CpuMatrix:
    """A matrix W (rows, columns) for products of few rows. Reads the array's memory, which must not change.

    `dtype` is that of the weights: `float32`, or `float16` and `bfloat16`, whose array holds their bits as uint16.

    Raises:
        TypeError: another dtype, or an array that does not go with it.
    """

    def __init__(self, pool: CpuPool, weights: npt.NDArray, dtype: str) -> None: ...
    def multiply(self, x: F32, y: F32) -> None:
        """y = x W^T in float32: x (m, columns), y (m, rows), contiguous.

        Raises:
            ValueError: shapes that do not fit, or an array that is not contiguous.
        """

def router_main(argv: list[str]) -> int:
    """Run `text-generation-router` with this argv (argv[0] is the program's name); returns the exit code."""

def launcher_main(argv: list[str]) -> int:
    """Run `text-generation-launcher` with this argv (argv[0] is the program's name); returns the exit code."""

@final
class Sampling:
    """Sampling parameters of one sequence; definitions in `proto/shard.proto`."""

    temperature: float
    top_k: int
    top_p: float
    typical_p: float
    repetition_penalty: float
    frequency_penalty: float
    presence_penalty: float
    seed: int
    top_n: int
    min_p: float
    bias_ids: U32
    biases: F32
    min_tokens: int
    end_ids: U32
    watermark_gamma: float
    watermark_delta: float
    raw_logprobs: bool

@final
class NewSequence:
    """A row that begins. Fields as in `proto/shard.proto`."""

    slot: int
    token_ids: U32
    prompt_length: int
    computed: int
    block_ids: U32
    sampling: Sampling
    prompt_logprobs: bool
    prompt_top_n: int

@final
class Plan:
    """One step to run. Array fields are read-only numpy arrays, named as in `proto/shard.proto`."""

    epoch: int
    step: int
    reset: bool
    """True for the first plan of a stream or of a newer epoch: every earlier row is void."""
    released_slots: U32
    copy_from: U32
    copy_to: U32
    new_sequences: list[NewSequence]
    slots: U32
    token_counts: U32
    row_flags: U32
    block_counts: U32
    block_ids: U32

@final
class WarmupRequest:
    """What the router wants to serve; 0 = the shard decides."""

    max_total_tokens: int
    max_sequences: int
    max_step_tokens: int
    max_cache_tokens: int

@final
class ShardServer:
    """Serves the shard protocol on a unix socket.

    Raises:
        OSError: the socket cannot be bound.
    """

    def __init__(self, socket: str) -> None: ...
    def loading(self, detail: str) -> None:
        """State LOADING, with a text for people."""

    def loaded(
        self,
        *,
        rank: int,
        world_size: int,
        dtype: str,
        device: str,
        vocab_size: int,
        layers: int,
        kv_heads: int,
        head_dim: int,
        block_size: int,
        max_positions: int,
        attention: str,
        capabilities: list[str],
    ) -> None:
        """State LOADED; `Info` answers with this."""

    def wait_warmup(self) -> WarmupRequest:
        """Block until the router calls `Warmup`. Raises KeyboardInterrupt on SIGINT, and runs signal handlers."""

    def warmed(self, *, blocks: int, max_sequences: int, max_step_tokens: int, max_total_tokens: int) -> None:
        """Answer `Warmup`; state READY. Later calls of `Warmup` get the same answer."""

    def refuse_warmup(self, message: str) -> None:
        """Answer `Warmup` with RESOURCE_EXHAUSTED and this message; `wait_warmup` may be called again."""

    def steps(self) -> Steps:
        """The plans, stream after stream."""

    def fail(self, message: str) -> None:
        """State FAILED: ends an open stream with INTERNAL and this message; waits (at most 1 s) until it is sent."""

    def close(self) -> None:
        """Stop serving and remove the socket."""

@final
class Steps(Iterator[Plan]):
    """Iterates over plans; waits without holding the interpreter lock. Ends when `close` is called."""

    def __iter__(self) -> Steps: ...
    def __next__(self) -> Plan: ...
    def reply(
        self,
        plan: Plan,
        result: object | None,
        *,
        wait_us: int = 0,
        forward_us: int = 0,
        sample_us: int = 0,
    ) -> None:
        """Answer a plan; from any thread, in the order of the plans.

        `result` is None on ranks other than 0 (an acknowledgement), else any object with the attributes `slots`,
        `token_counts`, `row_flags`, `token_ids`, `top_counts`, `top_ids` (uint32 arrays), `logprobs`, `top_logprobs`
        (float32 arrays) and `prompt_logprobs` (a list of objects with the attributes `slot`, `position`, `logprobs`,
        `top_ids` and `top_logprobs`).
        Answering a plan of a stream that has ended does nothing.
        """
