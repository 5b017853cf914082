#!/bin/sh
# Builds the wheel into an emptied folder: wheel.sh VENV FOLDER [MATURIN OPTION...]
# The version of maturin is the one that the tests use.
set -eu
venv=$1 folder=$2
shift 2
here=$(dirname "$0")
[ -x "$venv/bin/maturin" ] ||
    sh "$here/pip.sh" "$venv" install "$(grep '^maturin==' "$here/../requirements-test.lock")"
mkdir -p "$folder"
rm -f "$folder"/text_generation_server-*.whl
"$venv/bin/maturin" build --quiet --locked --interpreter "$venv/bin/python" --out "$folder" "$@"
