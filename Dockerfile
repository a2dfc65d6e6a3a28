# The server as an image: the package with its bundled models, no compiler, an unprivileged user. See docs/docker.md.
#
# python:3.12.14-slim-bookworm. The digest was read from public Dockerfiles that pin this tag, since the machine this was written on reaches no
# registry; compare it once with `docker buildx imagetools inspect python:3.12.14-slim-bookworm`.
ARG PYTHON=python:3.12.14-slim-bookworm@sha256:782412e85d0f0984994c290652577d4018aff08145c85b262bb63dc0c7522254

FROM ${PYTHON} AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PATH=/opt/munjang/bin:$PATH
RUN python -m venv /opt/munjang
WORKDIR /source
COPY requirements/server.txt ./
RUN pip install --no-deps --require-hashes -r server.txt
COPY pyproject.toml MANIFEST.in README.md LICENSE ./
COPY src ./src
RUN pip install --no-deps --no-build-isolation . && pip uninstall --yes setuptools

FROM ${PYTHON}
ENV PYTHONUNBUFFERED=1 PYTHONUTF8=1 MUNJANG_HOME=/data PATH=/opt/munjang/bin:$PATH
RUN useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin munjang \
    && install --directory --owner munjang --group munjang /data
COPY --from=build /opt/munjang /opt/munjang
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
