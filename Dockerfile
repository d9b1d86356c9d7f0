# The server with what team mode needs (PostgreSQL, Redis, OpenID Connect); by default SQLite in the volume /data. Without
# compose run it with --init, so that what ended processes leave is reaped.
FROM python:3.11-slim AS build
WORKDIR /src
COPY requirements/team.txt requirements/build.txt requirements/
RUN python -m venv /app && /app/bin/pip install --no-cache-dir --require-hashes --no-deps -r requirements/team.txt
COPY pyproject.toml README.md LICENSE ./
COPY guard_core guard_core
COPY inspector inspector
COPY templates templates
COPY static static
RUN pip install --no-cache-dir --require-hashes --no-deps -r requirements/build.txt \
    && pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir /wheels . \
    && /app/bin/pip install --no-cache-dir --no-deps /wheels/*.whl

FROM python:3.11-slim
RUN useradd --system --home-dir /data --uid 10001 inspector && mkdir -m 700 /data && chown inspector /data
COPY --from=build /app /app
USER 10001
ENV DATA_DIR=/data BIND=0.0.0.0 PORT=8000 PYTHONUNBUFFERED=1
VOLUME /data
EXPOSE 8000
# The first start after an upgrade copies and changes the database before it answers.
HEALTHCHECK --interval=10s --timeout=5s --start-period=5m CMD ["/app/bin/python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8000/healthz', timeout=4)"]
# The server refuses to listen here without TEAM=1 (accounts), or LOGIN_PROXY=1, which says that something in front asks
# for a login, or that the port is published on the loopback address only.
ENTRYPOINT ["/app/bin/compaction-inspector"]
CMD ["serve"]
