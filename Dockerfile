# The server as an image: ELF binaries of launcher and router, the wheel with the shard, PyTorch with CUDA from PyPI.
#
#   docker build --tag text-generation-server .
#   docker run --gpus all --shm-size 1g -p 8080:80 -v $PWD/data:/data text-generation-server --model-id MODEL
#
# It runs as user 1000, who must be able to write the folder mounted at /data (or run it with --user).
# PORT is 80, as TGI's users expect. Container engines let any user bind it; where one does not, set PORT=8080.

ARG RUST_VERSION=1.95
ARG PYTHON_VERSION=3.12
ARG DEBIAN=bookworm

# --- build: Rust once, for the binaries and for the wheel's native module ---

FROM rust:${RUST_VERSION}-slim-${DEBIAN} AS build
RUN apt-get update \
    && apt-get install --yes --no-install-recommends python3-venv \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY . .
# Built once and run often: the slower build pays.
ENV CARGO_PROFILE_RELEASE_LTO=thin CARGO_PROFILE_RELEASE_CODEGEN_UNITS=1
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/target \
    export CARGO_TARGET_DIR=/target \
    && python3 -m venv /venv \
    && sh scripts/wheel.sh /venv /out --release \
    && cargo build --locked --release --bin text-generation-launcher --bin text-generation-router \
    && cp /target/release/text-generation-launcher /target/release/text-generation-router /out/ \
    && strip /out/text-generation-launcher /out/text-generation-router

# --- run ---

FROM python:${PYTHON_VERSION}-slim-${DEBIAN}
# Triton compiles a small C stub for each kernel at run time.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends gcc libc6-dev \
    && rm -rf /var/lib/apt/lists/*
# Packages change rarely and weigh most: their layer comes first.
COPY requirements.lock /tmp/requirements.lock
RUN pip install --no-cache-dir --requirement /tmp/requirements.lock && rm /tmp/requirements.lock
COPY --from=build /out /tmp/out
# The binaries take the place of the wheel's scripts of the same names: they start faster and need less memory.
RUN pip install --no-cache-dir --no-deps /tmp/out/*.whl \
    && cp /tmp/out/text-generation-launcher /tmp/out/text-generation-router /usr/local/bin/ \
    && rm -r /tmp/out \
    && useradd --uid 1000 --create-home server \
    && install --directory --owner server /data

ENV HF_HOME=/data \
    XDG_CACHE_HOME=/data/cache \
    HOSTNAME=0.0.0.0 \
    PORT=80 \
    OMP_WAIT_POLICY=passive \
    PYTHONDONTWRITEBYTECODE=1
USER server
WORKDIR /data
VOLUME /data
EXPOSE 80
# A large model may take long to download and load; until then the answer is 503 with the reason.
HEALTHCHECK --interval=15s --timeout=5s --start-period=15m --retries=3 \
    CMD ["python", "-c", "import os, urllib.request as r; r.urlopen(f\"http://127.0.0.1:{os.environ['PORT']}/health\", timeout=4)"]
ENTRYPOINT ["text-generation-launcher"]
