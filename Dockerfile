# One image for every service of a farm: docker-compose.yml says which command each runs.
# No secret, no adb and no phone's runner is in it: docs/operations.md says where those come from.
FROM debian:12-slim AS build
SHELL ["/bin/bash", "-euo", "pipefail", "-c"]
RUN apt-get update \
    && apt-get install -y --no-install-recommends \
        python3 python3-venv gcc libc6-dev cmake ninja-build libegl-dev libgles-dev libvulkan-dev \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /opt/tilefarm
# What changes seldom comes first: another kernel installs no package anew. (A package without modules stands
# in for ours; the checkout is used where it lies, since kernels are beside it.)
COPY pyproject.toml constraints.txt README.md ./
RUN mkdir orchestrator workers reports && touch orchestrator/__init__.py workers/__init__.py reports/__init__.py \
    && python3 -m venv .venv \
    && .venv/bin/pip install --no-cache-dir -c constraints.txt -e '.[flower,postgres]' \
    && .venv/bin/pip install --no-cache-dir -c constraints.txt --no-deps slangtorch
COPY workers/runner workers/runner
RUN cmake -S workers/runner --preset linux -DRUNNER_TESTS=OFF \
    && cmake --build workers/runner/build/linux --target tilefarm-runner \
    && find workers/runner/build -type f -not -name tilefarm-runner -delete
COPY matrix.yaml ./
COPY kernels kernels
COPY orchestrator orchestrator
COPY workers workers
COPY reports reports
RUN .venv/bin/python -m compileall -q .venv orchestrator workers reports

FROM debian:12-slim
# More of Debian's packages, e.g. drivers for `tilefarm agent --local`: "libegl1 libgles2 libgl1-mesa-dri libvulkan1
# mesa-vulkan-drivers".
ARG PACKAGES=""
RUN apt-get update \
    && apt-get install -y --no-install-recommends python3 tini util-linux ${PACKAGES} \
    && rm -rf /var/lib/apt/lists/* \
    && groupadd --gid 10001 tilefarm \
    && useradd --uid 10001 --gid 10001 --home-dir /srv/tilefarm --no-create-home --shell /usr/sbin/nologin tilefarm \
    && install -d -o 10001 -g 10001 /srv/tilefarm /srv/tilefarm/out /srv/tilefarm/blobs /srv/tilefarm/work
COPY --from=build /opt/tilefarm /opt/tilefarm
ENV PATH=/opt/tilefarm/.venv/bin:/usr/local/bin:/usr/bin:/bin \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    HOME=/srv/tilefarm \
    TILEFARM_OUT=/srv/tilefarm/out \
    TILEFARM_BLOBS=file:///srv/tilefarm/blobs \
    TILEFARM_WORKDIR=/srv/tilefarm/work
WORKDIR /opt/tilefarm
USER 10001:10001
# tini hands signals on, and reaps the processes that a crashed driver leaves behind.
ENTRYPOINT ["/usr/bin/tini", "--"]
CMD ["tilefarm", "--help"]
HEALTHCHECK --interval=60s --timeout=20s --start-period=60s CMD ["tilefarm", "health", "broker"]
