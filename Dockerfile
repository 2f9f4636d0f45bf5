# The image of `floorcast run`: a virtual environment of pinned, hashed wheels on Debian's slim Python, nothing else.
# tests/helm/test_image.py runs these very steps in clean folders, and hadolint reads them.
#
#   docker build --build-arg SOURCE_DATE_EPOCH="$(git log -1 --pretty=%ct)" --tag registry.example.com/floorcast:0.1.0 .
#
# The tag of the base is a patch release; add its digest to have the same bytes for ever:
#   --build-arg PYTHON=python:3.11.14-slim-bookworm@sha256:...
ARG PYTHON=python:3.11.14-slim-bookworm

FROM ${PYTHON} AS build
# Times in the wheel are those of the commit, so that the same commit gives the same files.
ARG SOURCE_DATE_EPOCH=1767225600
ARG PIP_NO_CACHE_DIR=1
ARG PIP_DISABLE_PIP_VERSION_CHECK=1
ARG PIP_ROOT_USER_ACTION=ignore
WORKDIR /src
COPY requirements-build.lock requirements.lock ./
RUN python -m venv /opt/build \
 && /opt/build/bin/pip install --require-hashes --only-binary :all: --requirement requirements-build.lock \
 && python -m venv --without-pip /opt/floorcast \
 && /opt/build/bin/pip --python /opt/floorcast/bin/python install --no-compile --require-hashes --only-binary :all: \
      --requirement requirements.lock
COPY pyproject.toml README.md LICENSE ./
COPY config config
COPY models models
COPY predictor predictor
# Compiled here, since the running container cannot write; by content, not by time, so that it comes out the same.
RUN SOURCE_DATE_EPOCH="${SOURCE_DATE_EPOCH}" \
    /opt/build/bin/pip wheel --no-deps --no-build-isolation --wheel-dir /opt/wheel . \
 && /opt/build/bin/pip --python /opt/floorcast/bin/python install --no-compile --no-deps --no-index /opt/wheel/*.whl \
 && python -m compileall -q --invalidation-mode unchecked-hash -s /opt/floorcast -x '/(tests|testing)/' \
      /opt/floorcast/lib

FROM ${PYTHON}
LABEL org.opencontainers.image.title="floorcast" \
      org.opencontainers.image.description="Predictive autoscaler for LLM inference on Kubernetes" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /opt/floorcast /opt/floorcast
# Nothing but /tmp need be writable: code that is compiled as it is used is kept there.
ENV PATH=/opt/floorcast/bin:$PATH HOME=/tmp NUMBA_CACHE_DIR=/tmp/numba PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
# Numbers, so that runAsNonRoot can be checked by the kubelet without reading /etc/passwd.
USER 65532:65532
EXPOSE 8080
ENTRYPOINT ["floorcast"]
CMD ["run"]
