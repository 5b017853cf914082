"""A shard process from its configuration file to its end: load, warm up, run plans, answer.

Owns the order of things and how they end: 0 after a signal, 1 after an error that was told to the router and the log.
"""

import gc
import logging
import queue
import signal
import threading
import time
from types import FrameType

import torch

from text_generation_server import logs
from text_generation_server._native import Plan, ShardServer, Steps
from text_generation_server.config import ShardConfig, read_config
from text_generation_server.engine.build import BLOCK_SIZE, Shard, build_shard
from text_generation_server.engine.memory import Capacity, DoesNotFit, find_capacity
from text_generation_server.engine.runner import PendingStep, Runner
from text_generation_server.engine.slots import Slots
from text_generation_server.parallel.mesh import leave
from text_generation_server.refusal import Refusal

_LOGGER = logging.getLogger(__name__)
_MEMORY_HINT = "Lower --max-batch-prefill-tokens, --max-batch-size or --cuda-memory-fraction."


def serve(config_path: str) -> int:
    """Run a shard until it is told to end. Returns the exit code."""
    logs.set_up("info", as_json=True)
    try:
        config = read_config(config_path, ShardConfig)
        logs.set_up(config.log.level, config.log.json)
        signal.signal(signal.SIGTERM, _stop)
        server = ShardServer(config.socket)
    except (Refusal, OSError) as error:
        _LOGGER.error("%s", error)
        return 1
    try:
        return _run(config, server)
    except KeyboardInterrupt:
        return 0
    except Refusal as refusal:
        _LOGGER.error("%s", refusal)
        server.fail(str(refusal))
    except Exception as error:
        message = _describe(error)
        _LOGGER.exception("%s", message)
        server.fail(message)
    finally:
        server.close()
        leave()
    return 1


def _stop(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _run(config: ShardConfig, server: ShardServer) -> int:
    began = time.monotonic()
    shard = build_shard(config, server.loading)
    _LOGGER.info("weights are loaded", extra=logs.fields(seconds=round(time.monotonic() - began, 2)))
    server.loaded(**shard.details())
    capacity = _warm_up(server, shard, config.memory_fraction)
    # Objects made so far live as long as the process: the collector need not look at them again.
    gc.collect()
    gc.freeze()
    slots = Slots(capacity.max_sequences, capacity.max_total_tokens, BLOCK_SIZE, shard.device)
    runner = Runner(shard.decoder, shard.attention, slots, shard.collectives, shard.threads)
    steps = server.steps()
    if shard.device.type == "cuda":
        _run_ahead(steps, runner, shard.rank)
    else:
        _run_in_turn(steps, runner, shard.rank)
    return 0


def _refusal(error: DoesNotFit | torch.OutOfMemoryError) -> str:
    """The cause on one line, the way out on a second."""
    return str(error) if isinstance(error, DoesNotFit) else f"{' '.join(str(error).split())}\n{_MEMORY_HINT}"


def _warm_up(server: ShardServer, shard: Shard, memory_fraction: float) -> Capacity:
    """Wait for warm-ups until one fits."""
    while True:
        request = server.wait_warmup()
        try:
            capacity = find_capacity(request, shard.decoder, shard.attention, memory_fraction)
            shard.attention.allocate(capacity.blocks)
        except (DoesNotFit, torch.OutOfMemoryError) as error:
            _LOGGER.error("the warm-up is refused: %s", error)
            server.refuse_warmup(_refusal(error))
            continue
        server.warmed(
            blocks=capacity.blocks,
            max_sequences=capacity.max_sequences,
            max_step_tokens=capacity.max_step_tokens,
            max_total_tokens=capacity.max_total_tokens,
        )
        _LOGGER.info("the shard is ready", extra=logs.fields(blocks=capacity.blocks, sequences=capacity.max_sequences))
        return capacity


# === the loop ===


def _run_in_turn(steps: Steps, runner: Runner, rank: int) -> None:
    """Launch, answer, next: on a CPU nothing is left to overlap."""
    idle_since = time.perf_counter()
    for plan in steps:
        waited = int((time.perf_counter() - idle_since) * 1e6)
        _answer(steps, rank, plan, runner.launch(plan), waited)
        idle_since = time.perf_counter()


def _run_ahead(steps: Steps, runner: Runner, rank: int) -> None:
    """Launch the next step while a second thread waits for the device and answers the one before."""
    launched: queue.SimpleQueue[tuple[Plan, PendingStep, int] | None] = queue.SimpleQueue()
    failures: list[BaseException] = []

    def answer_all() -> None:
        try:
            while (item := launched.get()) is not None:
                _answer(steps, rank, *item)
        except BaseException as error:
            failures.append(error)
            signal.raise_signal(signal.SIGINT)

    thread = threading.Thread(target=answer_all, name="answers", daemon=True)
    thread.start()
    try:
        idle_since = time.perf_counter()
        for plan in steps:
            waited = int((time.perf_counter() - idle_since) * 1e6)
            launched.put((plan, runner.launch(plan), waited))
            idle_since = time.perf_counter()
    except KeyboardInterrupt:
        if failures:
            raise failures[0] from None
        raise
    finally:
        launched.put(None)
    thread.join()
    if failures:
        raise failures[0]


def _answer(steps: Steps, rank: int, plan: Plan, pending: PendingStep, waited: int) -> None:
    result = pending.result() if rank == 0 else None
    timings = pending.timings
    steps.reply(plan, result, wait_us=waited, forward_us=timings.forward_us, sample_us=timings.sample_us)


def _describe(error: Exception) -> str:
    text = f"{type(error).__name__}: {error}"
    return f"{text}; {_MEMORY_HINT}" if isinstance(error, torch.OutOfMemoryError | MemoryError) else text
