"""A toy shard: the next token is one more than the last. Shows how little a shard has to do, and keeps what it saw."""

import threading
from types import SimpleNamespace

import grpc
import numpy as np

from text_generation_server import _native

INFO = {
    "rank": 0,
    "world_size": 1,
    "dtype": "float32",
    "device": "cpu",
    "vocab_size": 100,
    "layers": 2,
    "kv_heads": 1,
    "head_dim": 8,
    "block_size": 4,
    "max_positions": 64,
    "attention": "toy",
    "capabilities": ["toy"],
}

CAPACITY = {"blocks": 16, "max_sequences": 4, "max_step_tokens": 32, "max_total_tokens": 64}

SAMPLE = 1


class ToyShard:
    """Serves on a thread; `gate` holds every step back until it is set."""

    def __init__(self, socket):
        self.socket = socket
        self.server = _native.ShardServer(socket)
        self.gate = threading.Event()
        self.gate.set()
        self.plans = []
        self.errors = []
        self.rows = {}
        self.thread = None

    def start(self):
        self.server.loaded(**INFO)
        self.thread = threading.Thread(target=self._serve)
        self.thread.start()

    def close(self):
        self.gate.set()
        self.server.close()
        if self.thread is not None:
            self.thread.join(5)
            assert not self.thread.is_alive()
        assert self.errors == []

    def _serve(self):
        try:
            self.request = self.server.wait_warmup()
            self.server.warmed(**CAPACITY)
            steps = self.server.steps()
            for plan in steps:
                self.plans.append(plan)
                self.gate.wait()
                steps.reply(plan, self.step(plan), wait_us=1, forward_us=2, sample_us=3)
        except Exception as error:
            self.errors.append(error)

    def step(self, plan):
        if plan.reset:
            self.rows.clear()
        for slot in plan.released_slots.tolist():
            del self.rows[slot]
        for sequence in plan.new_sequences:
            self.rows[sequence.slot] = sequence.token_ids.tolist()
        slots = plan.slots[(plan.row_flags & SAMPLE) != 0]
        for slot in slots.tolist():
            self.rows[slot].append((self.rows[slot][-1] + 1) % INFO["vocab_size"])
        return result(slots, [self.rows[slot][-1] for slot in slots.tolist()])


def result(slots, token_ids):
    count = len(token_ids)
    return SimpleNamespace(
        slots=np.asarray(slots, dtype=np.uint32),
        token_counts=np.ones(count, dtype=np.uint32),
        row_flags=np.zeros(count, dtype=np.uint32),
        token_ids=np.array(token_ids, dtype=np.uint32),
        logprobs=np.full(count, -0.5, dtype=np.float32),
        top_counts=np.array([], dtype=np.uint32),
        top_ids=np.array([], dtype=np.uint32),
        top_logprobs=np.array([], dtype=np.float32),
        prompt_logprobs=[],
    )


def connect(socket):
    # By default grpcio names the socket's path as the authority, which Rust's HTTP/2 refuses as malformed.
    return grpc.insecure_channel(f"unix:{socket}", options=[("grpc.default_authority", "localhost")])
