import json
import os
import signal
import time
from pathlib import Path

import pytest

from .conftest import BIG, SHA, Command, Hub, model_files

MODEL = "owner/model"


def test_a_model_is_fetched_and_described(hub: Hub, online: Command) -> None:
    hub.files |= {
        "training_args.bin": b"x",
        "consolidated.safetensors": b"x",
        "original/model.safetensors": b"x",
        "README.md": b"x",
        "additional_chat_templates/tool.jinja": b"{{ x }}",
    }
    outcome = online.run(MODEL)
    assert outcome.code == 0, outcome.error
    assert outcome.result["model_id"] == MODEL
    assert outcome.result["revision_sha"] == SHA
    assert outcome.result["pipeline_tag"] == "text-generation"
    folder = outcome.result["folder"]
    assert sorted(os.listdir(folder)) == sorted([*model_files(), "additional_chat_templates"])


def test_a_second_start_fetches_nothing_again(hub: Hub, online: Command) -> None:
    online.run(MODEL)
    hub.asked.clear()
    outcome = online.run(MODEL)
    assert outcome.code == 0
    assert not any("GET /owner/model/resolve" in line for line in hub.asked)


@pytest.mark.parametrize("how", ["offline", "no network", "hub broken"])
def test_a_cached_model_needs_no_hub(hub: Hub, online: Command, how: str) -> None:
    online.run(MODEL)
    hub.asked.clear()
    if how == "offline":
        online.variables["HF_HUB_OFFLINE"] = "1"
    elif how == "no network":
        online.variables["HF_ENDPOINT"] = "http://127.0.0.1:9"
    else:
        hub.status = 502
    outcome = online.run(MODEL)
    assert outcome.code == 0, outcome.error
    assert outcome.result["revision_sha"] == SHA
    assert how == "hub broken" or hub.asked == []
    assert any("without asking the Hub" in line["message"] for line in outcome.lines)


def test_parts_of_a_model_and_progress(hub: Hub, online: Command) -> None:
    hub.files = model_files(shards=3, weight_bytes=BIG)
    hub.delay = 0.15
    outcome = online.run(MODEL)
    assert outcome.code == 0, outcome.error
    lines = [line for line in outcome.lines if line["message"].startswith("downloading")]
    assert 1 <= len(lines) <= outcome.seconds + 1
    assert lines[-1]["message"].startswith("downloading model-0000")
    assert lines[-1]["message"].endswith("of 9.0 MB")
    assert {"timestamp", "level", "message", "target", "percent"} <= lines[-1].keys()


def test_a_broken_connection_is_resumed(hub: Hub, online: Command) -> None:
    # Larger than the pieces of 10 MB in which the library reads.
    hub.files = model_files(weight_bytes=25_000_000)
    hub.cut_at = 23_000_000
    outcome = online.run(MODEL)
    assert outcome.code == 0, outcome.error
    (start,) = [int(text.removeprefix("bytes=").rstrip("-").split("-")[0]) for text in hub.ranges]
    assert 0 < start <= 23_000_000
    assert hub.gets("model.safetensors") == 2


def test_after_a_kill_finished_files_are_not_fetched_again(hub: Hub, online: Command) -> None:
    hub.files = model_files(shards=2, weight_bytes=BIG)
    slow = "model-00002-of-00002.safetensors"
    hub.slow = {slow: 1.0}
    process = online.start(MODEL)
    first = "model-00001-of-00002.safetensors"
    while not (list(online.folder.rglob(first)) and hub.gets(slow)):
        time.sleep(0.05)
    process.kill()
    process.communicate()
    hub.slow = {}
    outcome = online.run(MODEL)
    assert outcome.code == 0, outcome.error
    assert (hub.gets(first), hub.gets(slow)) == (1, 2)


def test_an_interrupt_ends_at_once(hub: Hub, online: Command) -> None:
    hub.files = model_files(weight_bytes=30_000_000)
    hub.delay = 0.3
    process = online.start(MODEL)
    while not hub.gets("model.safetensors"):
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    assert process.wait(5) == 130
    process.communicate()


def test_a_busy_hub_is_asked_again(hub: Hub, online: Command) -> None:
    hub.fails_first = 2
    outcome = online.run(MODEL)
    assert outcome.code == 0, outcome.error
    assert any("trying again" in line["message"] for line in outcome.lines)


def test_a_private_model_with_its_token(hub: Hub, online: Command) -> None:
    hub.token = "hf_secret"
    assert "was not found" in online.run(MODEL).error[0]
    online.variables["HF_TOKEN"] = "hf_secret"
    assert online.run(MODEL).code == 0


def test_dummy_weights_are_not_fetched(hub: Hub, online: Command) -> None:
    outcome = online.run(MODEL, load_format="dummy")
    assert outcome.code == 0
    assert hub.gets("model.safetensors") == 0
    assert hub.gets("tokenizer.json") == 1


@pytest.mark.parametrize(
    ("status", "code", "cause", "way_out"),
    [
        (401, None, "was not found", "HF_TOKEN"),
        (404, "RepoNotFound", "was not found", "spelling"),
        (403, "GatedRepo", "is restricted", "terms on https://huggingface.co/owner/model"),
        (404, "RevisionNotFound", "no revision `main`", "--revision"),
        (500, None, "status 500", "later"),
    ],
)
def test_what_the_hub_refuses(hub: Hub, online: Command, status: int, code: str, cause: str, way_out: str) -> None:
    hub.status, hub.error_code = status, code
    outcome = online.run(MODEL)
    assert outcome.code == 1
    assert outcome.seconds < 20  # 3.5 s of pauses for the busy Hub; the rest is a loaded machine
    assert len(outcome.error) == 2
    assert cause in outcome.error[0]
    assert way_out in outcome.error[1]
    assert outcome.result == {}


def test_no_network_and_not_cached(command: Command) -> None:
    command.variables["HF_ENDPOINT"] = "http://127.0.0.1:9"
    outcome = command.run(MODEL)
    assert (outcome.code, len(outcome.error)) == (1, 2)
    assert "cannot be reached" in outcome.error[0]
    assert outcome.seconds < 15


def test_offline_and_not_cached(command: Command) -> None:
    command.variables["HF_HUB_OFFLINE"] = "1"
    outcome = command.run(MODEL)
    assert (outcome.code, len(outcome.error)) == (1, 2)
    assert "offline mode is on" in outcome.error[0]
    assert "HF_HUB_OFFLINE" in outcome.error[1]


def test_offline_with_half_a_model(hub: Hub, online: Command) -> None:
    online.run(MODEL, load_format="dummy")
    online.variables["HF_HUB_OFFLINE"] = "1"
    outcome = online.run(MODEL)
    assert (outcome.code, len(outcome.error)) == (1, 2)
    assert "not complete" in outcome.error[0]
    assert online.run(MODEL, load_format="dummy").code == 0


def test_a_cache_that_cannot_be_written(hub: Hub, online: Command) -> None:
    (online.folder / "file").write_text("")
    outcome = online.run(MODEL, huggingface_hub_cache=str(online.folder / "file"))
    assert (outcome.code, len(outcome.error)) == (1, 2)
    assert "cannot be written" in outcome.error[0]


def test_a_full_disk_is_known_before_the_download(hub: Hub, online: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    import shutil

    from text_generation_server.prepare import hub as module
    from text_generation_server.prepare.hub_errors import Place
    from text_generation_server.refusal import Refusal

    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10**9, 9 * 10**8, 10**8))
    with pytest.raises(Refusal, match=r"need 3.5 GB, the disk of the cache /c has 100 MB left"):
        module._Download(Place(MODEL, "main", "/c"), None, Path("c"))._check_space(online.folder, 3_500_000_000)


@pytest.mark.parametrize(
    ("remove", "add", "cause"),
    [
        ("tokenizer.json", {"vocab.txt": b"x"}, "holds no tokenizer.json (only vocab.txt)"),
        ("model.safetensors", {"pytorch_model.bin": b"x"}, "as pickles only (pytorch_model.bin)"),
        ("config.json", {"adapter_config.json": b"{}"}, "is a PEFT adapter"),
        ("config.json", {"m.Q4_0.gguf": b"x"}, "holds GGUF files only (m.Q4_0.gguf)"),
    ],
)
def test_models_that_cannot_be_served_are_refused_before_the_download(
    hub: Hub, online: Command, remove: str, add: dict[str, bytes], cause: str
) -> None:
    del hub.files[remove]
    hub.files |= add
    outcome = online.run(MODEL)
    assert (outcome.code, len(outcome.error)) == (1, 2)
    assert cause in outcome.error[0]
    assert not any("/resolve/" in line for line in hub.asked)


def test_an_invalid_id(command: Command) -> None:
    outcome = command.run("not a/valid id!/x")
    assert (outcome.code, len(outcome.error)) == (1, 2)
    assert "nor a valid Hub id" in outcome.error[0]


def test_a_revision_that_does_not_exist(hub: Hub, online: Command) -> None:
    outcome = online.run(MODEL, revision="v9")
    assert "no revision `v9`" in outcome.error[0]


def test_a_damaged_index(hub: Hub, online: Command) -> None:
    hub.files = model_files(shards=2)
    hub.files["model.safetensors.index.json"] = json.dumps({"weight_map": {"w": "../x.safetensors"}}).encode()
    assert "names files that are not" in online.run(MODEL).error[0]
