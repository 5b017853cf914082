#!/bin/sh
# Runs `uv pip` on a virtual environment, or pip where uv is not to be had: pip.sh FOLDER COMMAND [ARGUMENT...]
# Only for arguments that both understand.
set -eu
venv=$1 command=$2
shift 2
if [ -x "$venv/bin/uv" ]; then
    exec "$venv/bin/uv" pip "$command" --quiet --python "$venv/bin/python" "$@"
fi
exec "$venv/bin/python" -m pip "$command" --quiet --disable-pip-version-check "$@"
