"""Thousands of generated requests against the OpenAPI document: what the document allows and what it does not. No
answer may be a 5xx, and every answer must be one that the document describes. `test_openapi.py` runs a short round; by
hand, from the root of the repository and after `make develop binaries`:

    TEXT_GENERATION_BINARIES=.../debug .venv-test/bin/python integration-tests/fuzz_http.py --cases 10000
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from support.fake import faked

ROOT = Path(__file__).resolve().parents[1]
SCHEMATHESIS = Path(sys.executable).parent / "schemathesis"
CONFIGURATION = Path(__file__).resolve().parent / "schemathesis.toml"
# A short total limit keeps generations without a budget short.
LIMITS = ("--max-total-tokens", "256", "--max-input-tokens", "200", "--enable-prefill-logprobs")
ROUND_SECONDS = 1800
ROUND_SHARE = 4


def operations(document: dict[str, object]) -> int:
    """How many operations a document has."""
    paths = document["paths"]
    assert isinstance(paths, dict)
    return sum(method in ("get", "post") for path in paths.values() for method in path)


def fuzz(cases: int, folder: Path, model: Path, seed: int) -> tuple[int, str, int]:
    """Sends at least so many requests; returns schemathesis' exit code, its output, and how many it sent."""
    with faked(folder, model, *LIMITS) as (client, _):
        sent = 0
        document = client.get("/api-doc/openapi.json").json()
        # Beside the random requests, schemathesis sends some for each bound of the document: more than as many again.
        each = max(1, cases // (ROUND_SHARE * operations(document)))
        url = f"http://127.0.0.1:{client.port}"
        while True:
            command = [str(SCHEMATHESIS), "--config-file", str(CONFIGURATION), "run", f"{url}/api-doc/openapi.json"]
            command += ["--mode", "all", "--max-examples", str(each), "--seed", str(seed), "--workers", "2"]
            done = subprocess.run(
                command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=ROUND_SECONDS
            )
            # A GET route without parameters has few different requests: the rest of the cases is another round.
            made = generated(done.stdout)
            sent, seed = sent + made, seed + 1
            if done.returncode != 0 or sent >= cases or made == 0:
                return done.returncode, done.stdout, sent


def generated(output: str) -> int:
    """How many requests a round says it has sent."""
    found = re.search(r"([\d,]+) generated", output)
    return int(found.group(1).replace(",", "")) if found else 0


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--model", type=Path, help="a prepared model folder; the demo model when not given")
    options = parser.parse_args()
    model = options.model or demo_model()
    with tempfile.TemporaryDirectory() as folder:
        code, output, sent = fuzz(options.cases, Path(folder), model, options.seed)
    print(output)
    print(json.dumps({"fuzz_http": sent, "exit_code": code}))
    sys.exit(code)


def demo_model() -> Path:
    """The folder of the prepared demo model."""
    script = ROOT / "scripts" / "demo_model.py"
    done = subprocess.run([sys.executable, script], check=True, stdout=subprocess.PIPE, text=True)
    return Path(done.stdout.strip())


if __name__ == "__main__":
    main()
