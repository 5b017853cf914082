"""A model folder for the tests, and a local server that speaks the parts of the Hub that downloads use."""

import hashlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save

import text_generation_server

SERVER = Path(text_generation_server.__file__).parents[1]
SHA = "a" * 40
CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 8,
    "intermediate_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "vocab_size": 32,
    "rms_norm_eps": 1e-5,
    "max_position_embeddings": 64,
    "rope_theta": 10000.0,
}
BIG = 3_000_000


def model_files(shards: int = 1, weight_bytes: int = 4096) -> dict[str, bytes]:
    """The files of a model that passes every check (its weights are nonsense)."""
    files = {
        "config.json": json.dumps(CONFIG).encode(),
        "tokenizer.json": b"{}",
        "tokenizer_config.json": b"{}",
        "generation_config.json": b"{}",
    }
    if shards == 1:
        return files | {"model.safetensors": save({"w": np.zeros(weight_bytes, np.uint8)})}
    names = [f"model-{index + 1:05}-of-{shards:05}.safetensors" for index in range(shards)]
    weight_map = {f"w{index}": name for index, name in enumerate(names)}
    files["model.safetensors.index.json"] = json.dumps({"metadata": {}, "weight_map": weight_map}).encode()
    return files | {name: save({w: np.full(weight_bytes, 7, np.uint8)}) for w, name in weight_map.items()}


def write_model(folder: Path, files: dict[str, bytes]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


@dataclass
class Hub:
    """The fake Hub: its files, what goes wrong, and what it was asked."""

    files: dict[str, bytes] = field(default_factory=model_files)
    status: int = 200
    error_code: str | None = None
    fails_first: int = 0
    cut_at: int | None = None
    delay: float = 0.0
    slow: dict[str, float] = field(default_factory=dict)
    token: str | None = None
    url: str = ""
    asked: list[str] = field(default_factory=list)
    ranges: list[str] = field(default_factory=list)

    def gets(self, name: str) -> int:
        return self.asked.count(f"GET /owner/model/resolve/{SHA}/{name}")


def handler_of(hub: Hub) -> type[BaseHTTPRequestHandler]:  # noqa: C901
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            pass

        def answer(self, status: int, body: bytes, headers: dict[str, str]) -> None:
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def do_HEAD(self) -> None:
            self.do_GET()

        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            hub.asked.append(f"{self.command} {path}")
            if hub.fails_first:
                hub.fails_first -= 1
                return self.answer(503, b"busy", {})
            allowed = hub.token is None or self.headers.get("Authorization") == f"Bearer {hub.token}"
            if hub.status != 200 or not allowed:
                headers = {"X-Error-Code": hub.error_code} if hub.error_code else {}
                return self.answer(hub.status if hub.status != 200 else 401, b"", headers)
            if path.startswith("/api/models/owner/model"):
                return self.info(path.removeprefix("/api/models/owner/model"))
            parts = path.split("/resolve/")
            if parts[0] != "/owner/model" or len(parts) != 2:
                return self.answer(404, b"", {"X-Error-Code": "RepoNotFound"})
            return self.file(*parts[1].split("/", 1))

        def info(self, rest: str) -> None:
            if rest not in ("", "/revision/main", f"/revision/{SHA}"):
                return self.answer(404, b"", {"X-Error-Code": "RevisionNotFound"})
            siblings = [{"rfilename": name, "size": len(content)} for name, content in hub.files.items()]
            body = {"id": "owner/model", "sha": SHA, "pipeline_tag": "text-generation", "siblings": siblings}
            self.answer(200, json.dumps(body).encode(), {"Content-Type": "application/json"})

        def file(self, revision: str, name: str) -> None:
            content = hub.files.get(name)
            if content is None:
                return self.answer(404, b"", {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": SHA})
            headers = {"ETag": f'"{hashlib.sha256(content).hexdigest()}"', "X-Repo-Commit": SHA}
            headers["Accept-Ranges"] = "bytes"
            start, status = 0, 200
            if requested := self.headers.get("Range"):
                hub.ranges.append(requested)
                start, status = int(requested.removeprefix("bytes=").split("-")[0]), 206
                headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
            if self.command == "HEAD" or not name.endswith(".safetensors"):
                return self.answer(status, content[start:], headers)
            self.weights(name, start, status, headers)

        def weights(self, file: str, start: int, status: int, headers: dict[str, str]) -> None:
            content = hub.files[file]
            end = len(content)
            if hub.cut_at is not None and start < hub.cut_at:
                end, hub.cut_at = hub.cut_at, None
            self.send_response(status)
            for key, value in {"Content-Length": str(len(content) - start), **headers}.items():
                self.send_header(key, value)
            self.end_headers()
            for position in range(start, end, 300_000):
                try:
                    self.wfile.write(content[position : min(position + 300_000, end)])
                except OSError:  # the client was killed, as some tests want
                    return
                time.sleep(hub.slow.get(file, hub.delay))
            self.close_connection = end < len(content)

    return Handler


@pytest.fixture
def hub() -> Iterator[Hub]:
    hub = Hub()
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler_of(hub))
    hub.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    yield hub
    server.shutdown()
    server.server_close()


@dataclass
class Outcome:
    code: int
    result: dict[str, Any]
    error: list[str]
    lines: list[dict[str, Any]]
    seconds: float


@dataclass
class Command:
    """Runs `text-generation-server prepare` in a process of its own."""

    folder: Path
    variables: dict[str, str] = field(default_factory=dict)

    def config(self, model_id: str | None, **changes: Any) -> Path:
        values = {
            "model_id": model_id,
            "revision": None,
            "num_shard": 1,
            "load_format": "auto",
            "huggingface_hub_cache": str(self.folder / "hub"),
            "weights_cache_override": None,
            "cache_folder": str(self.folder / "cache"),
            "output": str(self.folder / "out.json"),
            "log": {"level": "info", "json": True},
        }
        path = self.folder / "prepare.json"
        path.write_text(json.dumps(values | changes))
        return path

    def start(self, model_id: str | None, **changes: Any) -> subprocess.Popen[str]:
        path = self.config(model_id, **changes)
        script = "from text_generation_server.cli import main; main()"
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
        return subprocess.Popen(
            [sys.executable, "-c", script, "prepare", "--config", str(path)],
            cwd=SERVER,
            env={**inherited, "HF_HOME": str(self.folder / "home"), "HF_HUB_DISABLE_XET": "1", **self.variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, model_id: str | None, **changes: Any) -> Outcome:
        (self.folder / "out.json").unlink(missing_ok=True)
        started = time.monotonic()
        process = self.start(model_id, **changes)
        stdout, stderr = process.communicate(timeout=60)
        seconds = time.monotonic() - started
        assert stdout == ""
        lines = stderr.splitlines()
        assert not any(line.startswith("Traceback") for line in lines), stderr
        output = self.folder / "out.json"
        result = json.loads(output.read_text()) if output.exists() else {}
        logged = [json.loads(line) for line in lines if line.startswith("{")]
        return Outcome(process.returncode, result, [x for x in lines if not x.startswith("{")], logged, seconds)


@pytest.fixture
def command(tmp_path: Path) -> Command:
    return Command(tmp_path)


@pytest.fixture
def online(command: Command, hub: Hub) -> Command:
    command.variables["HF_ENDPOINT"] = hub.url
    return command
