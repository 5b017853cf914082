"""JSON files that hold an object, with refusals that name the file. Knows no particular file."""

import json
from pathlib import Path
from typing import Any

from text_generation_server.refusal import Refusal

FETCH_AGAIN = "Fetch the file again (with git: `git lfs pull`)."


def read_json(path: Path) -> dict[str, Any]:
    """A JSON file that holds an object.

    Raises:
        Refusal: unreadable or something else.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Refusal(f"{path} cannot be read: {error}", "Check its permissions, or fetch it again.") from None
    try:
        value = json.loads(text)
    except ValueError as error:
        value, reason = None, f": {error}"
    else:
        reason = ""
    if not isinstance(value, dict):
        raise Refusal(f"{path} is not a JSON object{reason}", FETCH_AGAIN)
    return value
