"""A shard in plain `grpcio`: generated stubs and the rules of `proto/shard.proto`, none of our code. Its tokens are
hashes of those before them. Keeps the plans it was sent.
"""

from concurrent import futures

import grpc

BLOCK_SIZE = 4
VOCAB_SIZE = 500
BLOCKS = 32
SAMPLE = 1


def next_token(tokens):
    """The token that follows; any function of the tokens before it would do."""
    value = 17
    for token in tokens:
        value = (value * 31 + token + 1) % 1_000_003
    return value % VOCAB_SIZE


class GrpcioShard:
    """Implements the four calls. `serve` starts it on a socket."""

    def __init__(self, stubs, rank=0, world_size=1):
        self.messages = stubs.messages
        self.services = stubs.services
        self.rank = rank
        self.world_size = world_size
        self.plans = []
        self.state = self.messages.LOADED

    def serve(self, socket):
        server = grpc.server(futures.ThreadPoolExecutor(max_workers=4))
        self.services.add_ShardServicer_to_server(self, server)
        server.add_insecure_port(f"unix:{socket}")
        server.start()
        return server

    def Health(self, _request, _context):
        last = self.plans[-1].step if self.plans else 0
        return self.messages.HealthResponse(state=self.state, detail="ready", last_step=last)

    def Info(self, _request, _context):
        return self.messages.InfoResponse(
            protocol_version=1,
            rank=self.rank,
            world_size=self.world_size,
            dtype="float32",
            device="cpu",
            vocab_size=VOCAB_SIZE,
            block_size=BLOCK_SIZE,
            attention="none",
        )

    def Warmup(self, request, _context):
        self.state = self.messages.READY
        return self.messages.Capacity(
            blocks=BLOCKS,
            max_sequences=request.max_sequences or 8,
            max_step_tokens=request.max_step_tokens or 64,
            max_total_tokens=request.max_total_tokens or 64,
        )

    def Steps(self, plans, context):
        # The client waits for the headers before it sends a plan; grpcio would send them with the first result.
        context.send_initial_metadata(())
        rows = {}
        for plan in plans:
            self.plans.append(plan)
            yield self._step(rows, plan)

    def _step(self, rows, plan):
        for slot in plan.released_slots:
            del rows[slot]
        for sequence in plan.new_sequences:
            rows[sequence.slot] = list(sequence.token_ids)
        result = self.messages.StepResult(epoch=plan.epoch, step=plan.step, rank=self.rank)
        for slot, flags in zip(plan.slots, plan.row_flags, strict=True):
            if flags & SAMPLE:
                rows[slot].append(next_token(rows[slot]))
                if self.rank == 0:
                    result.slots.append(slot)
                    result.token_counts.append(1)
                    result.row_flags.append(0)
                    result.token_ids.append(rows[slot][-1])
                    result.logprobs.append(-0.25)
        return result
