# The server with what team mode needs (PostgreSQL, Redis); by default SQLite in the volume /data.
FROM python:3.11-slim AS build
WORKDIR /src
COPY requirements/team.txt requirements/team.txt
RUN python -m venv /app && /app/bin/pip install --no-cache-dir --require-hashes --no-deps -r requirements/team.txt
COPY pyproject.toml README.md LICENSE ./
COPY guard_core guard_core
COPY inspector inspector
COPY templates templates
COPY static static
RUN pip install --no-cache-dir hatchling==1.27.0 \
    && pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir /wheels . \
    && /app/bin/pip install --no-cache-dir --no-deps /wheels/*.whl

FROM python:3.11-slim
RUN useradd --system --home-dir /data --uid 10001 inspector && mkdir -m 700 /data && chown inspector /data
COPY --from=build /app /app
USER inspector
ENV DATA_DIR=/data BIND=0.0.0.0 PORT=8000 PYTHONUNBUFFERED=1
VOLUME /data
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=3s CMD ["/app/bin/python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8000/healthz', timeout=2)"]
# The server refuses to listen here without TEAM=1 (accounts), or LOGIN_PROXY=1, which says that something in front asks
# for a login, or that the port is published on the loopback address only.
ENTRYPOINT ["/app/bin/compaction-inspector"]
CMD ["serve"]
