"""HTTP as a plain client sends it: one connection a request, nothing hidden, streams that can be dropped midway.

Knows JSON and server-sent events, and no API of the server.
"""

import http.client
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

TIMEOUT_SECONDS = 120
JSON_HEADERS = {"content-type": "application/json"}


@dataclass(frozen=True)
class Reply:
    """A whole response. Header names are lower-case."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    def json(self) -> Any:
        return json.loads(self.body)


class Stream:
    """An open response of server-sent events. Leaving the `with` block drops the connection, finished or not."""

    def __init__(self, connection: http.client.HTTPConnection, response: http.client.HTTPResponse) -> None:
        self.connection = connection
        self.response = response
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.getheaders()}

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, *_: object) -> None:
        self.response.close()
        self.connection.close()

    def data(self) -> Iterator[str]:
        """The content of each `data:` line, as it arrives; comments are passed over."""
        for line in self.response:
            if line.startswith(b"data:"):
                yield line[5:].strip().decode()

    def frames(self) -> Iterator[Any]:
        """Each event as JSON; `[DONE]` as that string."""
        for data in self.data():
            yield data if data == "[DONE]" else json.loads(data)


class Client:
    """Requests to one server."""

    def __init__(self, port: int) -> None:
        self.port = port

    def open(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> Stream:
        """Sends a request and returns when the response's headers are there."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT_SECONDS)
        try:
            connection.request(method, path, body, headers)
            return Stream(connection, connection.getresponse())
        except BaseException:
            # An error keeps its frames, and so the connection: the server would go on generating for nobody.
            connection.close()
            raise

    def request(
        self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> Reply:
        with self.open(method, path, body, headers or {}) as stream:
            return Reply(stream.status, stream.headers, stream.response.read())

    def get(self, path: str) -> Reply:
        return self.request("GET", path)

    def post(self, path: str, payload: Any, headers: dict[str, str] | None = None) -> Reply:
        """Posts a JSON value."""
        return self.request("POST", path, json.dumps(payload).encode(), JSON_HEADERS | (headers or {}))

    def stream(self, path: str, payload: Any) -> Stream:
        """Posts a JSON value and leaves the response open."""
        return self.open("POST", path, json.dumps(payload).encode(), JSON_HEADERS)

    def generate(self, inputs: str, **parameters: Any) -> dict[str, Any]:
        """The response of `/generate`, which must succeed."""
        reply = self.post("/generate", {"inputs": inputs, "parameters": parameters})
        assert reply.status == 200, reply.text
        return reply.json()

    def tokens(self, inputs: str, **parameters: Any) -> list[int]:
        """The ids that `/generate` produces."""
        details = self.generate(inputs, details=True, **parameters)["details"]
        return [token["id"] for token in details["tokens"]]

    def metric(self, name: str) -> float:
        """The value of a metric without labels; 0 when it does not exist yet."""
        for line in self.get("/metrics").text.splitlines():
            if line.startswith((f"{name} ", f"{name}{{}} ")):
                return float(line.split()[-1])
        return 0.0


def at_once(call: Any, arguments: list[Any]) -> list[Any]:
    """Calls a function on every argument, all at the same time; results in order."""
    with ThreadPoolExecutor(len(arguments)) as pool:
        return list(pool.map(call, arguments))
