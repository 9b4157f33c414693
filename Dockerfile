# olstream: the service, its kernels compiled, and nothing to build with.
#
#     podman build -t ghcr.io/olstream/olstream:0.1.0 .
#     podman run --read-only -v ./config.yaml:/etc/olstream/config.yaml:ro -v state:/var/lib/olstream \
#         ghcr.io/olstream/olstream:0.1.0
#
# Pinned by its tag. Where a registry is reachable, add the digest: python:3.11-slim-bookworm@sha256:...
ARG BASE=docker.io/library/python:3.11-slim-bookworm

# hadolint ignore=DL3006
FROM ${BASE} AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore PYTHONDONTWRITEBYTECODE=1
WORKDIR /src

# Two environments: one that builds, and the one that is shipped, without pip.
COPY requirements.lock requirements-build.lock ./
RUN python -m venv /build \
    && /build/bin/pip install --quiet --no-compile --require-hashes -r requirements-build.lock \
    && python -m venv --without-pip /opt/olstream \
    && /build/bin/pip --python /opt/olstream/bin/python install --quiet --no-compile --require-hashes --only-binary :all: \
        -r requirements.lock \
    && find /opt/olstream -depth \( -type d -name tests -o -name '*.pyi' -o -name '*.a' \) -exec rm -rf '{}' +

COPY LICENSE README.md pyproject.toml ./
COPY olstream olstream
RUN /build/bin/pip wheel --quiet --no-deps --no-build-isolation --wheel-dir /wheels . \
    && /build/bin/pip --python /opt/olstream/bin/python install --quiet --no-compile --no-deps --no-index /wheels/*.whl \
    && /opt/olstream/bin/python -m compileall -q --invalidation-mode unchecked-hash /opt/olstream/lib

# Kernels for any processor of this architecture, so that the same image gives the same bits wherever it runs.
# Which algorithms' kernels: none named, all of them. Others are compiled at each start.
ARG ALGORITHMS=""
# hadolint ignore=SC2086
RUN NUMBA_CPU_NAME=generic XDG_CACHE_HOME=/opt/olstream/kernels /opt/olstream/bin/python -I -m olstream.kernels ${ALGORITHMS} \
    && chmod -R u=rwX,go=rX /opt/olstream

# hadolint ignore=DL3006
FROM ${BASE}
LABEL org.opencontainers.image.title="olstream" \
      org.opencontainers.image.description="Online linear learning on Kafka: predict, then learn, exactly once" \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.source="https://github.com/olstream/olstream"

COPY --from=build /opt/olstream /opt/olstream
# What is loaded as a kernel is executed: read from the image, and saved nowhere. To keep the kernels of other options or
# of one processor, mount a directory of user 10001 and name it by XDG_CACHE_HOME.
ENV PATH=/opt/olstream/bin:$PATH \
    HOME=/nonexistent \
    NUMBA_CPU_NAME=generic \
    OLSTREAM_KERNELS=/opt/olstream/kernels/olstream \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
RUN install -d -o 10001 -g 10001 -m 0700 /var/lib/olstream && install -d /etc/olstream
USER 10001:10001
WORKDIR /var/lib/olstream
VOLUME /var/lib/olstream
EXPOSE 9108
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 CMD ["/opt/olstream/bin/olstream", "health"]
ENTRYPOINT ["/opt/olstream/bin/olstream"]
CMD ["run", "/etc/olstream/config.yaml"]
