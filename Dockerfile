# Builds the source distribution, builds the wheel from it as a package index does, and installs the wheel.
FROM python:3.12-slim AS build
WORKDIR /src
COPY . .
RUN pip install --no-cache-dir "hatchling>=1.27" \
 && python -m hatchling build --target sdist --directory /dist \
 && pip wheel --no-cache-dir --no-deps --wheel-dir /dist /dist/*.tar.gz

FROM python:3.12-slim
COPY --from=build /dist/*.whl /src/constraints.txt /tmp/
RUN pip install --no-cache-dir --constraint /tmp/constraints.txt "$(ls /tmp/moot-*.whl)[mcp,serve,postgres,otel,anthropic]" \
 && rm -r /tmp/* && useradd --create-home --uid 1000 moot && mkdir /data && chown moot /data
COPY --from=build /src/LICENSE /usr/share/doc/moot/
USER 1000
ENV MOOT_DB=/data/moot.sqlite
VOLUME /data
ENTRYPOINT ["moot"]
CMD ["--help"]
