"""Checks which part may know which: the dependency rules, where names and environment reads may stand, and how every
file opens. Each rule is a function from a file to its faults; `check` runs all rules over all files.

A rule that must be broken is broken in `EXCEPTIONS`, with the reason.
"""

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from sources import is_test, relative, rust_code, tracked

PACKAGE = "server/text_generation_server/"
PRODUCT = ("router/", "launcher/", "proto/", PACKAGE)
# Modules, or folders of modules, that may read the environment.
SETTINGS = {"cli", "config"}
PRODUCT = ("router/", "launcher/", "proto/", PACKAGE)
ARCHITECTURES = (
    "llama|mistral|mixtral|qwen|gemma|falcon|bloom|deepseek|cohere|starcoder|gpt_?neox|gpt_?j|gpt_?2|mpt|phi_?[23]|olmo"
)
# Parts of the router that must not know HTTP.
BELOW_HTTP = ("text", "chat", "engine", "cache", "queue")
# What a family file may import beside the standard library: descriptions, and nothing that computes.
FAMILY_IMPORTS = ("spec", "hf_config", "rope_config")
FAMILY_STANDARD = ("__future__", "collections", "dataclasses", "enum", "functools", "math", "typing")

# (rule, path) -> why it may be broken there.
EXCEPTIONS: dict[tuple[str, str], str] = {
    ("architecture-names", PACKAGE + "prepare/weight_files.py"): "a publisher's file format has the name of its models",
}


@dataclass(frozen=True)
class Source:
    """One file: its path from the root, its text, and whether it holds tests only."""

    name: str
    text: str
    test: bool

    @property
    def rust(self) -> bool:
        """Whether it is Rust."""
        return self.name.endswith(".rs")

    @property
    def python(self) -> bool:
        """Whether it is Python."""
        return self.name.endswith(".py")

    def lines(self, pattern: str, text: str | None = None) -> Iterator[str]:
        """`line: match` of every match of a pattern."""
        searched = self.text if text is None else text
        for match in re.finditer(pattern, searched, re.IGNORECASE):
            yield f"{self.name}:{searched.count(chr(10), 0, match.start()) + 1}: `{match[0].strip()}`"


def imports(source: Source) -> Iterator[tuple[int, str]]:
    """Line and dotted name of every import of a Python file; relative ones keep their dots."""
    for node in ast.walk(ast.parse(source.text)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            yield from (
                (node.lineno, f"{base}.{alias.name}".replace("..", ".", node.level == 0)) for alias in node.names
            )


# === rules ===


def layers(source: Source) -> Iterator[str]:
    """Text, chat, engine, cache and queue never import http."""
    if source.rust and source.name.startswith(tuple(f"router/src/{part}/" for part in BELOW_HTTP)):
        yield from source.lines(r"\b(crate|super)::http\b|\baxum::|\bhyper", rust_code(source.text))


def family_imports(source: Source) -> Iterator[str]:
    """A family file imports the spec and the standard library only."""
    if not (source.python and source.name.startswith(PACKAGE + "models/families/")):
        return
    for line, name in imports(source):
        known = name.split(".")[0] in FAMILY_STANDARD or any(part in name.split(".") for part in FAMILY_IMPORTS)
        if not known:
            yield f"{source.name}:{line}: `{name}`"


def kernels(source: Source) -> Iterator[str]:
    """Kernels know no model: they import neither models nor configuration."""
    if source.python and source.name.startswith(PACKAGE + "kernels/"):
        for line, name in imports(source):
            if re.search(r"\b(models|config|engine|service)\b", name):
                yield f"{source.name}:{line}: `{name}`"


def environment(source: Source) -> Iterator[str]:
    """The environment is read in cli and config only."""
    settings = SETTINGS & {part.partition(".")[0] for part in source.name.split("/")}
    if settings or not source.name.startswith(PRODUCT):
        return
    if source.rust:
        yield from source.lines(r"\benv::(var|vars|var_os)\b|#\[arg\([^\]]*\benv\b", rust_code(source.text))
    elif source.python:
        yield from source.lines(r"\bos\.(environ|getenv)\b|\bfrom os import (environ|getenv)")


def architecture_names(source: Source) -> Iterator[str]:
    """No architecture is named outside the families and the registry."""
    allowed = "/families/" in source.name or source.name.endswith("/registry.py")
    if (source.rust or source.python) and source.name.startswith(PRODUCT) and not allowed:
        text = re.sub(r"(?s)#\[cfg\(test\)\]\s*mod .*", "", source.text) if source.rust else source.text
        yield from source.lines(rf"\b({ARCHITECTURES})\b(?!\.cpp)", text)


def purpose(source: Source) -> Iterator[str]:
    """Every file opens with what it is for."""
    if source.rust and not source.text.startswith("//!"):
        yield f"{source.name}:1: no `//!` paragraph"
    if source.python and source.text.strip() and ast.get_docstring(ast.parse(source.text)) is None:
        yield f"{source.name}:1: no docstring"


def unfinished(source: Source) -> Iterator[str]:
    """Nothing is left for later in the code."""
    if source.rust:
        yield from source.lines(r"\b(todo|unimplemented)!", rust_code(source.text))
    if source.rust or source.python:
        yield from source.lines(r"(//|#)\s*(TODO|FIXME|XXX|HACK)\b")


def outside_paths(source: Source) -> Iterator[str]:
    """Nothing points at a folder of one machine."""
    yield from source.lines(r"(?<![\w.~])/(?:work|home/\w+)/|\.\./shared\b")


# Rules that hold for tests as well.
EVERYWHERE = (unfinished, outside_paths)
CODE_ONLY = (purpose, layers, family_imports, kernels, environment, architecture_names)


# === running them ===


def check_source(source: Source) -> Iterator[str]:
    """Every fault of one file, as `rule: place: what`."""
    for rule in EVERYWHERE + (() if source.test else CODE_ONLY):
        name = rule.__name__.replace("_", "-")
        if (name, source.name) not in EXCEPTIONS:
            yield from (f"{name}: {fault}" for fault in rule(source))


def check() -> list[str]:
    """Every fault of the repository."""
    faults: list[str] = []
    for path in tracked(".rs", ".py", ".md", ".toml", ".proto", ".sh", ".yml", ".yaml"):
        faults += check_source(Source(relative(path), path.read_text(encoding="utf-8"), is_test(path)))
    return faults


def main() -> int:
    """Print the faults; 1 when there is one."""
    faults = check()
    print(*faults, sep="\n", end="\n" if faults else "")
    print(f"architecture: {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
