"""The command `text-generation-server`: what the launcher runs as its children, and a few tools for people.

Owns the command line and the exit codes (0 done, 1 refused with two lines, 2 wrong usage, 130 interrupted). Imports
what a command needs only when that command runs: starting must not cost seconds.
"""

import json
import os
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

from text_generation_server import logs
from text_generation_server.refusal import Refusal

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Shards and model preparation. Servers are started with text-generation-launcher.",
)

_REFUSED, _INTERRUPTED = 1, 130
_PACKAGE = "text-generation-server"
_CACHE_NAME = "text-generation"
ConfigFile = Annotated[Path, typer.Option(help="JSON file that the launcher writes.", exists=True, dir_okay=False)]


def main() -> None:
    """Run the command line and exit."""
    try:
        app(prog_name=_PACKAGE)
    except Refusal as refusal:
        _leave(_REFUSED, f"Error: {refusal.cause}\n{refusal.way_out}\n")
    except KeyboardInterrupt:
        _leave(_INTERRUPTED, "")
    except SystemExit as end:
        # typer turns Ctrl-C into this.
        if end.code == _INTERRUPTED:
            _leave(_INTERRUPTED, "")
        raise


def _leave(code: int, last_words: str) -> None:
    """End at once: threads of unfinished downloads, which resume next time, must not keep the process alive."""
    sys.stderr.write(last_words)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def default_cache_folder() -> Path:
    """Where converted models are kept unless a configuration says otherwise; the launcher's default is the same."""
    caches = os.environ.get("XDG_CACHE_HOME")
    return (Path(caches) if caches else Path.home() / ".cache") / _CACHE_NAME


@app.callback(invoke_without_command=True)
def _options(
    show_version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    if show_version:
        typer.echo(f"{_PACKAGE} {version(_PACKAGE)}")
        raise typer.Exit


@app.command()
def serve(config: ConfigFile) -> None:
    """Run one shard (started by the launcher)."""
    from text_generation_server.service import serve as run

    raise typer.Exit(run(config))


@app.command()
def prepare(config: ConfigFile) -> None:
    """Find or fetch, convert and check a model (started by the launcher)."""
    from text_generation_server.prepare.config import read_config, write_result
    from text_generation_server.prepare.model import prepare as run

    settings = read_config(config)
    logs.set_up(settings.log_level, settings.log_json)
    write_result(run(settings), settings.output)


@app.command("download-weights")
def download_weights(
    model_id: Annotated[str, typer.Argument(help="A Hub id, a local folder or a .gguf file.")],
    revision: Annotated[str | None, typer.Option(help="Branch, tag or commit.")] = None,
    extension: Annotated[str, typer.Option(help="Only .safetensors is supported.")] = ".safetensors",
    logger_level: Annotated[str, typer.Option(help="Log level.")] = "INFO",
    json_output: Annotated[bool, typer.Option("--json-output/--no-json-output", help="Log JSON lines.")] = False,
    trust_remote_code: Annotated[bool, typer.Option("--trust-remote-code", help="Not supported.")] = False,
    merge_lora: Annotated[bool, typer.Option("--merge-lora", help="Not supported.")] = False,
) -> None:
    """Fetch and check a model, and print its folder."""
    from text_generation_server.prepare.config import PrepareConfig
    from text_generation_server.prepare.model import prepare as run

    unsupported = {
        f"--extension {extension}": extension != ".safetensors",
        "--trust-remote-code": trust_remote_code,
        "--merge-lora": merge_lora,
    }
    for option, is_set in unsupported.items():
        if is_set:
            raise Refusal(f"{option} is not supported", "Leave it out; models are served from safetensors.")
    logs.set_up(logger_level, json_output)
    settings = PrepareConfig(
        model_id=model_id,
        revision=revision,
        num_shard=1,
        load_format="auto",
        huggingface_hub_cache=None,
        weights_cache_override=None,
        cache_folder=default_cache_folder(),
        output=Path(),
        log_level=logger_level,
        log_json=json_output,
    )
    typer.echo(run(settings).folder)


@app.command()
def env(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Print versions and devices."""
    from text_generation_server.environment import describe

    facts = describe()
    if as_json:
        typer.echo(json.dumps(facts, indent=2))
        return
    for name, value in facts.items():
        typer.echo(f"{name}: {value if isinstance(value, str) else json.dumps(value)}")
