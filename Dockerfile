# Builds the source distribution, builds the wheel from it as a package index does, and installs the wheel.
# The digest is the one that docker-library/repo-info records for this tag. Dependabot updates it.
FROM python:3.12-slim-bookworm@sha256:0f5b26b9518d002b6173fd61daad821fa340635ebfec5bba471013f9ca114579 AS base

FROM base AS build
COPY hashes/build.txt /tmp/
RUN pip install --no-cache-dir --require-hashes --requirement /tmp/build.txt
WORKDIR /src
COPY . .
RUN python -m hatchling build --target sdist --directory /dist \
 && pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir /dist /dist/*.tar.gz

# This layer changes only with the packages, so a new version of Moot downloads only the layers after it.
FROM base AS packages
COPY hashes/image.txt /tmp/
RUN python -m venv /opt/moot \
 && /opt/moot/bin/pip install --no-cache-dir --require-hashes --requirement /tmp/image.txt

FROM base
RUN useradd --create-home --uid 1000 moot && mkdir /data && chown moot /data
COPY --from=packages /opt/moot /opt/moot
RUN --mount=type=bind,from=build,source=/dist,target=/dist \
    /opt/moot/bin/pip install --no-cache-dir --no-deps --no-index /dist/*.whl
COPY LICENSE /usr/share/doc/moot/
USER 1000
ENV PATH=/opt/moot/bin:$PATH MOOT_DB=/data/moot.sqlite
VOLUME /data
EXPOSE 2025
# `moot serve` answers every request, whatever its status. For other commands, use `--no-healthcheck`.
HEALTHCHECK --interval=30s --timeout=10s --start-period=20s CMD ["python", "-c", \
  "from http.client import HTTPConnection as C; c = C('127.0.0.1', 2025, timeout=5); c.request('GET', '/ok'); c.getresponse()"]
ENTRYPOINT ["moot"]
CMD ["--help"]
