"""Prints the path of the wheel of these sources; builds it unless one was built from the same contents before.

A new clone so starts in seconds where another one was built on the same machine. The sources are those that make names;
the toolchain is part of the key. Old wheels are removed.

    python scripts/wheel_of_sources.py .venv ~/.cache/text-generation/wheel FILE...
"""

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

BUILD = Path(__file__).resolve().parent / "wheel.sh"
# Branches that somebody may go back to.
KEPT = 4


def key_of(sources: list[str]) -> str:
    """A name for the contents of these files and the compiler that is installed."""
    digest = hashlib.sha256(subprocess.run(["rustc", "-vV"], check=True, capture_output=True).stdout)
    for source in sorted(sources):
        contents = hashlib.sha256(Path(source).read_bytes()).hexdigest()
        digest.update(f"{contents} {source}\n".encode())
    return digest.hexdigest()[:16]


def wheel_of(venv: str, cache: Path, sources: list[str]) -> Path:
    """The wheel, built if need be.

    Raises:
        subprocess.CalledProcessError: it cannot be built; the compiler said why.
    """
    folder = cache / key_of(sources)
    built = sorted(folder.glob("*.whl"))
    if not built:
        subprocess.run(["sh", str(BUILD), venv, str(folder), "--release"], check=True, stdout=sys.stderr)
        built = sorted(folder.glob("*.whl"))
    folder.touch()
    remove_old(cache)
    return built[0]


def remove_old(cache: Path) -> None:
    """Keeps the wheels that were used last."""
    for entry in sorted(cache.iterdir(), key=lambda entry: entry.stat().st_mtime, reverse=True)[KEPT:]:
        if entry.is_dir():
            shutil.rmtree(entry)
        else:
            entry.unlink()


if __name__ == "__main__":
    print(wheel_of(sys.argv[1], Path(sys.argv[2]), sys.argv[3:]))
