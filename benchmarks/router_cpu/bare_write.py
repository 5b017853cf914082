"""The floor: CPU time of writing frames of a given size to loopback sockets, with nothing around it.

The writer is a process of its own, so that its CPU time is counted apart from the reader's.
"""

import multiprocessing
import os
import socket
import threading


def cpu_per_frame(frame_bytes: int, frames: int, streams: int) -> float:
    """CPU seconds (user and system) that one write of one frame costs the writer, over `streams` connections."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        answer, question = multiprocessing.Pipe(duplex=False)
        arguments = (listener.getsockname()[1], frame_bytes, frames, streams, question)
        writer = multiprocessing.get_context("spawn").Process(target=write_frames, args=arguments)
        writer.start()
        readers = [threading.Thread(target=drain, args=(listener.accept()[0],)) for _ in range(streams)]
        for reader in readers:
            reader.start()
        seconds = answer.recv()
        writer.join()
        for reader in readers:
            reader.join()
    return seconds / frames


def write_frames(port: int, frame_bytes: int, frames: int, streams: int, answer) -> None:
    """Writes frames to all connections in turn and sends back the CPU seconds it took."""
    connections = [socket.create_connection(("127.0.0.1", port)) for _ in range(streams)]
    for connection in connections:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    frame = b"x" * frame_bytes
    before = os.times()
    for number in range(frames):
        connections[number % streams].sendall(frame)
    after = os.times()
    for connection in connections:
        connection.close()
    answer.send(after.user - before.user + after.system - before.system)


def drain(connection: socket.socket) -> None:
    """Reads until the other end closes."""
    with connection:
        while connection.recv(1 << 16):
            pass
