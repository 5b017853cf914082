"""The floor: CPU time of writing the same frames to the same client in the same rhythm, with nothing around the writes.

A process of its own plays a server that knows nothing but to answer every request with chunks that were made before.
Only its writes are timed. The rhythm matters: a burst of frames after 10 ms of sleep finds cold caches and a client
that has to be woken, as a router's frames do; back to back the same writes cost a third less.
"""

import asyncio
import multiprocessing
import socket
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection

from benchmarks.http_load import load

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
LAST_CHUNK = b"0\r\n\r\n"


@dataclass(frozen=True)
class Rhythm:
    """What is written: `rounds` times, `frames` frames to each of `streams` connections, a frame each step."""

    streams: int
    rounds: int
    frames: int
    step_seconds: float


def cpu_per_frame(frame_bytes: int, rhythm: Rhythm) -> float:
    """CPU seconds that one write of one frame costs, chunk head included in its size."""
    answer, question = multiprocessing.Pipe(duplex=False)
    with socket.create_server(("127.0.0.1", 0), backlog=rhythm.streams) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        writer = multiprocessing.Process(target=serve, args=(listener, frame_bytes, rhythm, question))
        writer.start()
    requests = rhythm.streams * rhythm.rounds
    result = asyncio.run(load(url, rhythm.streams, requests, 16, rhythm.frames))
    seconds = answer.recv()
    writer.join()
    frames = requests * rhythm.frames
    if result["tokens"] != frames:
        raise RuntimeError(f"the client saw {result['tokens']} of {frames} frames: {result['error_examples']}")
    return seconds / frames


def serve(listener: socket.socket, frame_bytes: int, rhythm: Rhythm, answer: Connection) -> None:
    """Answers every round of requests and sends back the CPU seconds of the writes."""
    chunk = chunk_of(frame_bytes)
    connections = [listener.accept()[0] for _ in range(rhythm.streams)]
    for connection in connections:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    spent = 0.0
    for _ in range(rhythm.rounds):
        for connection in connections:
            read_request(connection)
            connection.sendall(HEAD)
        for _ in range(rhythm.frames):
            time.sleep(rhythm.step_seconds)
            before = time.thread_time()
            for connection in connections:
                connection.sendall(chunk)
            spent += time.thread_time() - before
        for connection in connections:
            connection.sendall(LAST_CHUNK)
    answer.send(spent)


def chunk_of(frame_bytes: int) -> bytes:
    """A chunk of so many bytes in all, that holds one frame."""
    size = frame_bytes
    while len(chunk := f"{size:x}\r\n".encode() + frame(size) + b"\r\n") > frame_bytes:
        size -= 1
    return chunk


def frame(size: int) -> bytes:
    """A `data:` frame of so many bytes."""
    return b"data:" + b"x" * (size - len(b"data:\n\n")) + b"\n\n"


def read_request(connection: socket.socket) -> None:
    """Reads a request with its body."""
    received = b""
    while True:
        head, found, body = received.partition(b"\r\n\r\n")
        lengths = [line.split(b":")[1] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length")]
        if found and len(body) >= int(lengths[0]):
            return
        received += connection.recv(1 << 16)
