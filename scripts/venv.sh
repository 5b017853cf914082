#!/bin/sh
# Makes a virtual environment hold exactly the packages of a lock file: venv.sh FOLDER LOCK
# Uses uv (30 s for torch, 2 s with a warm cache); falls back to pip, which takes minutes, where uv cannot be had.
set -eu
venv=$1 lock=$2
python=${PYTHON:-python3}

"$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' || {
    echo "error: $python is $("$python" --version 2>&1), but Python 3.10 or newer is needed" >&2
    echo "hint: name another one: make PYTHON=python3.12 ..." >&2
    exit 1
}
[ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
[ -x "$venv/bin/uv" ] || "$venv/bin/python" -m pip install --quiet --disable-pip-version-check uv ||
    echo "warning: uv cannot be installed; using pip, which is slower" >&2

if [ -x "$venv/bin/uv" ]; then
    "$venv/bin/uv" pip sync --quiet --python "$venv/bin/python" "$lock"
else
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --requirement "$lock"
fi
