"""Log lines on standard error, in the same shape as those of the Rust programs, so that the launcher can relay them.

A JSON line holds `timestamp`, `level`, `message`, `target` and any fields given as `extra=fields(...)`. Owns the format
and the level; knows nothing about what is logged.
"""

import json
import logging
import sys
from datetime import datetime, timezone
from typing import Any

TRACE = 5
_LEVELS = {
    "trace": TRACE,
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "off": logging.CRITICAL + 1,
}
_NAMES = {logging.WARNING: "WARN", logging.CRITICAL: "ERROR"}
_PACKAGE = "text_generation_server"


def fields(**values: Any) -> dict[str, dict[str, Any]]:
    """Fields of one log line: `logger.info("loaded", extra=fields(seconds=1.5))`."""
    return {"fields": values}


def set_up(level: str, as_json: bool) -> None:
    """Send the log lines of the whole process to standard error. May be called again; the last call wins.

    `level` is a level name or a filter directive of the Rust programs (`info,tower=warn`): of a directive, the part
    for this package counts, else the part without a target, else `info`.
    """
    logging.addLevelName(TRACE, "TRACE")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonFormatter() if as_json else _TextFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    # Libraries are told to keep quiet below warnings: their chatter is no use to an operator.
    root.setLevel(max(logging.WARNING, _level_of(level)))
    logging.getLogger(_PACKAGE).setLevel(_level_of(level))


def _level_of(directive: str) -> int:
    default = logging.INFO
    for part in directive.lower().split(","):
        target, _, name = part.strip().rpartition("=")
        if name not in _LEVELS:
            continue
        if target == _PACKAGE:
            return _LEVELS[name]
        if not target:
            default = _LEVELS[name]
    return default


# === impl formatters ===


class _JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "timestamp": _timestamp(record),
            "level": _NAMES.get(record.levelno, record.levelname),
            "message": record.getMessage(),
            "target": record.name,
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


class _TextFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        level = _NAMES.get(record.levelno, record.levelname)
        line = f"{_timestamp(record)} {level:>5} {record.name}: {record.getMessage()}"
        for name, value in getattr(record, "fields", {}).items():
            line += f" {name}={value}"
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line


def _timestamp(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, tz=timezone.utc)
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")
