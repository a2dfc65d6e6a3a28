# The server as an image: the wheel with the bundled models, no compiler, a user without rights. See docs/docker.md.
FROM python:3.12-slim AS build
WORKDIR /source
COPY pyproject.toml MANIFEST.in README.md LICENSE ./
COPY src ./src
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.12-slim
ENV PYTHONUNBUFFERED=1 PYTHONUTF8=1 MUNJANG_HOME=/data
RUN --mount=type=bind,from=build,source=/wheels,target=/wheels \
    pip install --no-cache-dir "$(ls /wheels/munjang-*.whl)[serve,korean,search,topics,pgvector]" \
    && useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin munjang \
    && install --directory --owner munjang --group munjang /data
USER munjang
WORKDIR /data
VOLUME /data
EXPOSE 8080
# /health needs no key
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8080/health', timeout=2)"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["munjang"]
CMD ["serve", "--host", "0.0.0.0", "--api-key-file", "/run/secrets/munjang_key"]
