"""Shapes that must be found, made anew from a seed so that no real one is here, and texts that only look like them."""

from __future__ import annotations

import base64
import json
import random
import string
from collections.abc import Callable

DICE = random.Random(7)
LETTERS, DIGITS = string.ascii_letters, string.digits
HEX = "0123456789abcdef"


def run(alphabet: str, count: int) -> str:
    """Random characters, at least one digit among them where the alphabet has any."""
    text = "".join(DICE.choice(alphabet) for _ in range(count))
    return text if alphabet == LETTERS or any(char in DIGITS for char in text) else run(alphabet, count)


ALNUM = LETTERS + DIGITS
URL = ALNUM + "_-"


def _jwt() -> str:
    head, body = (
        base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")
        for part in ({"alg": "HS256", "typ": "JWT"}, {"sub": run(DIGITS, 10), "name": "Jo"})
    )
    return f"{head}.{body}.{run(URL, 43)}"


def _key(label: str) -> str:
    lines = "\n".join(run(ALNUM + "+/", 64) for _ in range(4))
    return f"-----BEGIN {label}-----\n{lines}\n-----END {label}-----"


# Each with the text that it needs around it: {} is where the secret is.
TRUE: dict[str, tuple[str, str]] = {
    "aws key id": ("{}", "AKIA" + run("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 16)),
    "aws secret": ("AWS_SECRET_ACCESS_KEY={}", run(ALNUM + "/+", 40)),
    "github classic": ("{}", "ghp_" + run(ALNUM, 36)),
    "github fine": ("{}", f"github_pat_{run(ALNUM, 22)}_{run(ALNUM, 59)}"),
    "github app": ("{}", "ghs_" + run(ALNUM, 36)),
    "gitlab": ("{}", "glpat-" + run(URL, 20)),
    "slack bot": ("{}", f"xoxb-{run(DIGITS, 12)}-{run(DIGITS, 12)}-{run(ALNUM, 24)}"),
    "slack hook": ("{}", f"https://hooks.slack.com/services/T{run(ALNUM, 8)}/B{run(ALNUM, 8)}/{run(ALNUM, 24)}"),
    "stripe": ("{}", "sk_live_" + run(ALNUM, 24)),
    "stripe hook": ("{}", "whsec_" + run(ALNUM, 32)),
    "anthropic": ("{}", f"sk-ant-api03-{run(URL, 93)}AA"),
    "openai": ("{}", "sk-proj-" + run(URL, 48)),
    "openai old": ("{}", "sk-" + run(ALNUM, 48)),
    "google api": ("{}", "AIza" + run(URL, 35)),
    "google oauth": ("{}", "ya29." + run(URL, 60)),
    "hugging face": ("{}", "hf_" + run(LETTERS, 34)),
    "npm": ("{}", "npm_" + run(ALNUM, 36)),
    "pypi": ("{}", "pypi-AgEIcHlwaS5vcmc" + run(URL, 120)),
    "digitalocean": ("{}", "dop_v1_" + run(HEX, 64)),
    "sendgrid": ("{}", f"SG.{run(URL, 22)}.{run(URL, 43)}"),
    "mailgun": ("{}", "key-" + run(HEX, 32)),
    "twilio": ("{}", "SK" + run(HEX, 32)),
    "shopify": ("{}", "shpat_" + run(HEX, 32)),
    "linear": ("{}", "lin_api_" + run(ALNUM, 40)),
    "figma": ("{}", "figd_" + run(URL, 40)),
    "databricks": ("{}", "dapi" + run(HEX, 32)),
    "grafana": ("{}", f"glsa_{run(ALNUM, 32)}_{run(HEX, 8)}"),
    "vault": ("{}", "hvs." + run(URL, 90)),
    "groq": ("{}", "gsk_" + run(ALNUM, 52)),
    "telegram": ("{}", f"{run('123456789', 10)}:AA{run(URL, 33)}"),
    "discord hook": ("{}", f"https://discord.com/api/webhooks/{run(DIGITS, 18)}/{run(URL, 68)}"),
    "jwt": ("{}", _jwt()),
    "rsa key": ("{}", _key("RSA PRIVATE KEY")),
    "ssh key": ("{}", _key("OPENSSH PRIVATE KEY")),
    "age key": ("{}", "AGE-SECRET-KEY-1" + run("QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58)),
    "database login": ("postgresql://orders:{}@db.internal:5432/orders", "t7Rw" + run(ALNUM, 10)),
    "bearer": ("Authorization: Bearer {}", run(URL, 40) + "9"),
    "password": ("password: {}", "Winter!" + run(DIGITS, 4)),
    "password flag": ("mysql --password {} orders", "k9#" + run(ALNUM, 9)),
    "password said": ("the password is {}", "plum-Tree-" + run(DIGITS, 3)),
    "api key": ('api_key = "{}"', run(HEX, 32)),
    "client secret": ("client_secret: {}", run(URL, 36) + "4"),
    "azure account key": ("AccountName=orders;AccountKey={}", run(ALNUM + "+/", 86) + "=="),
    "session token": ("session_token={}", run(ALNUM, 32) + "7"),
    "encoded": ("{}", base64.b64encode(f"token ghp_{run(ALNUM, 36)}\n".encode()).decode()),
    "e-mail": ("{}", "ines.moreau@orchard-systems.io"),
    "e-mail plus": ("{}", "jonas+billing@team.orchard.co.uk"),
    "linux account": ("/home/{}/orders/settings.py", "imoreau"),
    "mac account": ("/Users/{}/Library/Logs", "ines.moreau"),
    "windows account": ("C:\\Users\\{}\\AppData", "jonasb"),
    "phone": ("{}", "+49 30 2345 6789"),
    "phone us": ("{}", "(415) 555-2671"),
}
# The four places of a session that a secret is put into: as JSON values of a message.
PLACES: dict[str, Callable[[str], object]] = {
    "text": lambda words: f"Please use this here: {words}\nand then go on.",
    "arguments": lambda words: {"command": f"deploy --now && echo {words}", "timeout": 30},
    "result": lambda words: json.dumps({"log": f"12:04:11 INFO start\n{words}\n12:04:12 done", "exit_code": 0}),
    "name": lambda words: {f"{words}": 1},
}
LOOK_ALIKES: tuple[str, ...] = (
    "max_tokens: 4096, temperature 0.2",
    "prompt_tokens=181055 completion_tokens=2048",
    "commit 9f2c4a1be07d3358aa41c6d2f0b77e19c85d3a60",
    "sha256:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae",
    "integrity sha512-aGVsbG8gd29ybGQgdGhpcyBpcyBub3QgYSBzZWNyZXQgYXQgYWxsIG9rYXk=",
    "id 550e8400-e29b-41d4-a716-446655440000",
    'password = os.environ["DB_PASSWORD"]',
    "api_key=process.env.OPENAI_API_KEY",
    "password: ${DB_PASSWORD}",
    "export GITHUB_TOKEN=<your token>",
    "token = tokenizer.decode(ids[0])",
    "secret_name: orders-database-credentials",
    "password: required",
    "Enter password: ********",
    "def check_password(password: str, hashed: bytes) -> bool:",
    "class TokenBucketRateLimiterMiddleware(Middleware):",
    "sk-learn and sk-image are libraries",
    "the key-value store, key-frames and key-bindings",
    "npm_config_registry and npm_lifecycle_event",
    "hf_hub_download(repo_id='gpt2')",
    "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    "AKIAIOSFODNN7EXAMPLE",
    "sk-ant-your-key-goes-here-please-replace",
    "git clone git@github.com:orchard/orders.git",
    "pip install left-pad@1.3.0 and actions/checkout@v4",
    "@pytest.fixture and @app.route",
    "user@example.com wrote to noreply@github.com",
    "/home/user/project and /Users/Shared/data and /home/runner/work",
    "C:\\Users\\Public\\Documents",
    "2024-01-15 12:04:11 to 2024-02-15",
    "192.168.100.200 and 10.0.0.1:8080",
    "version 3.11.7, python 3.12.0-rc1, build 20240115.123456",
    "line 123-456, rows 1234-5678",
    "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
    "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABgQC7 public",
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
    "https://user:password@localhost:5432/test",
    "token: o200k_base, encoding cl100k_base",
    "call_id toolu_01A2b3C4d5E6f7G8h9J0k1L2 and msg_01XyZabcDEFghiJKLmnoPQRs",
    "request id req_011CSHoEeqs5C35K2UUqR7Fy",
    "secret sauce: the secret is patience",
    "the token bucket refills 100 tokens",
    "const passwordField = document.querySelector('#password')",
    "AccountKey=... is missing",
    "Authorization: Bearer $TOKEN",
    "3.14159265358979 and +1.5e-7",
    "cache_key = f'{user_id}:{page}'",
    "primary_key=True, foreign_key='orders.id'",
)
