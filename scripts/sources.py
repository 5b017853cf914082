"""Finds the sources that the checks look at, and takes Rust apart just far enough for them.

Owns which files count as sources, as tests and as generated. Knows no rule; the rules are in `budget.py` and
`architecture.py`.
"""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Comments, strings and characters of Rust: what braces and names must not be counted in.
RUST_OPAQUE = re.compile(
    r"""//[^\n]*|/\*.*?\*/|b?r(?P<hashes>\#*)".*?"(?P=hashes)|b?"(?:\\.|[^"\\])*"|b?'(?:\\[^\n]{1,8}?|[^'\\\n])'""",
    re.DOTALL,
)
TEST_MODULE = re.compile(r"#\[cfg\(test\)\]\s*(?:pub(?:\([a-z]+\))?\s+)?mod\s+\w+\s*\{")


def tracked(*suffixes: str) -> list[Path]:
    """Files of the repository, tracked or new, with one of these suffixes (all when none is given)."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
    paths = (ROOT / name for name in names)
    return [path for path in paths if path.is_file() and (not suffixes or path.suffix in suffixes)]


def relative(path: Path) -> str:
    """The path as people write it, from the root of the repository."""
    return path.relative_to(ROOT).as_posix()


def is_test(path: Path) -> bool:
    """Whether a file holds tests only."""
    parts = path.relative_to(ROOT).parts
    return bool({"tests", "integration-tests"} & set(parts)) or parts[-1] in ("tests.rs", "testing.rs", "conftest.py")


def blank(match: re.Match[str]) -> str:
    """Spaces in place of a match, line ends kept."""
    return re.sub(r"[^\n]", " ", match[0])


def closing_brace(text: str, opening: int) -> int:
    """Position after the brace that closes the one at `opening`; the end of the text when none does."""
    depth = 0
    for match in re.compile(r"[{}]").finditer(text, opening):
        depth += 1 if match[0] == "{" else -1
        if depth == 0:
            return match.end()
    return len(text)


def rust_code(text: str) -> str:
    """Rust source with comments, strings and test modules blanked; line numbers stay."""
    code = RUST_OPAQUE.sub(blank, text)
    while module := TEST_MODULE.search(code):
        end = closing_brace(code, module.end() - 1)
        code = code[: module.start()] + re.sub(r"[^\n]", "\0", code[module.start() : end]) + code[end:]
    return code


def rust_test_lines(code: str) -> int:
    """Lines of the test modules that `rust_code` blanked."""
    return sum(1 for line in code.split("\n") if "\0" in line)


def rust_functions(code: str) -> Iterator[tuple[str, int, int, int]]:
    """Name, first line, number of lines and number of parameters of every function with a body in `rust_code`'s
    output."""
    for match in re.finditer(r"\bfn\s+(\w+)", code):
        signature_end = re.compile(r"[{;]").search(code, match.end())
        if signature_end is None or signature_end[0] == ";":
            continue
        start, end = code.count("\n", 0, match.start()), code.count("\n", 0, closing_brace(code, signature_end.start()))
        yield match[1], start + 1, end - start + 1, parameter_count(code[match.end() : signature_end.start()])


def parameter_count(signature: str) -> int:
    """Parameters of a Rust signature that begins after the function's name; `self` does not count."""
    after_generics = signature[skip_generics(signature) :]
    inside = parenthesised(after_generics)
    depth, names = 0, 0
    for position, character in enumerate(inside):
        arrow = inside[position - 1 : position + 1] == "->"
        depth += (character in "(<[{") - (character in ")]}" or (character == ">" and not arrow))
        names += character == ":" and depth == 0 and "::" not in inside[max(0, position - 1) : position + 2]
    return names


def skip_generics(signature: str) -> int:
    """Position of the parenthesis that opens the parameters."""
    depth = 0
    for position, character in enumerate(signature):
        if character == "(" and depth == 0:
            return position
        arrow = signature[position - 1 : position + 1] == "->"
        depth += (character == "<") - (character == ">" and not arrow)
    return len(signature)


def parenthesised(text: str) -> str:
    """What stands between the first parenthesis and the one that closes it."""
    depth = 0
    for position, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth == 0:
            return text[1:position]
    return text[1:]
