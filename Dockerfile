# The image of `floorcast run`: a virtual environment of pinned, hashed wheels on Debian's Python, nothing else.
ARG PYTHON=python:3.11-slim-bookworm

FROM ${PYTHON} AS build
WORKDIR /src
COPY requirements.lock requirements-build.lock ./
RUN python -m venv /opt/floorcast \
 && python -m venv /opt/build \
 && /opt/floorcast/bin/pip install --no-cache-dir --no-compile --require-hashes --only-binary :all: -r requirements.lock \
 && /opt/build/bin/pip install --no-cache-dir --require-hashes --only-binary :all: -r requirements-build.lock
COPY pyproject.toml README.md LICENSE ./
COPY config config
COPY models models
COPY predictor predictor
RUN /opt/build/bin/pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir /dist . \
 && /opt/floorcast/bin/pip install --no-cache-dir --no-deps --no-index /dist/*.whl \
 && /opt/floorcast/bin/pip uninstall -q -y pip setuptools

FROM ${PYTHON}
LABEL org.opencontainers.image.title="floorcast" org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /opt/floorcast /opt/floorcast
# Numbers, so that runAsNonRoot can be checked by the kubelet without reading /etc/passwd.
USER 65532:65532
ENV PATH=/opt/floorcast/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
EXPOSE 8080
ENTRYPOINT ["floorcast"]
CMD ["run"]
