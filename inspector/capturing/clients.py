"""How each agent learns the address of its model.

Sources: the agents' documentation and, where that says nothing, their programs (Claude Code 2.1.330, Codex 0.169.0,
Gemini CLI 0.61.0, OpenCode 1.18.33, pi 1.5.2, aider's documentation of litellm's variables).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

ANTHROPIC, OPENAI = "https://api.anthropic.com", "https://api.openai.com/v1"
GEMINI, CODE_ASSIST = "https://generativelanguage.googleapis.com", "https://cloudcode-pa.googleapis.com"
CHATGPT = "https://chatgpt.com/backend-api/codex"
Addresses = Mapping[str, str]  # by API: where the proxy listens for it


@dataclass(frozen=True)
class Provider:
    """A provider that an agent may call. `variable` names the variable in which a user says another address."""

    name: str
    address: str
    variable: str = ""

    def upstream(self, environ: Mapping[str, str]) -> str:
        """Where its requests go: what the user has set, else the provider itself."""
        return environ.get(self.variable, "").strip() or self.address


@dataclass(frozen=True)
class CapturedAgent:
    """An agent. `variables` and `arguments` make it call the proxy instead; `warning` says, for the environment it is
    started in, why nothing may be captured."""

    name: str
    providers: Callable[[Mapping[str, str]], tuple[Provider, ...]]
    variables: Callable[[Addresses], dict[str, str]]
    arguments: Callable[[Addresses], list[str]] = field(default=lambda addresses: [])
    warning: Callable[[Mapping[str, str]], str] = field(default=lambda environ: "")


def _claude_warning(environ: Mapping[str, str]) -> str:
    """With one of these variables set, Claude Code does not use the address that it is given here."""
    clouds = [name for name in ("CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX") if environ.get(name)]
    return f"{clouds[0]} is set: requests to that cloud are not captured." if clouds else ""


def _codex(environ: Mapping[str, str]) -> tuple[Provider, ...]:
    """Codex asks another address where it is used with a ChatGPT account, which its own file says."""
    home = Path(environ.get("CODEX_HOME", "").strip() or "~/.codex").expanduser()
    try:
        auth = json.loads((home / "auth.json").read_bytes())
    except (OSError, ValueError):
        auth = None
    by_account = isinstance(auth, dict) and bool(auth.get("tokens")) and not auth.get("OPENAI_API_KEY")
    return (Provider("openai", CHATGPT if by_account else OPENAI, "" if by_account else "OPENAI_BASE_URL"),)


def _opencode(addresses: Addresses) -> dict[str, str]:
    """OpenCode takes addresses as configuration, each with the path of its API."""
    paths = {"anthropic": "/v1", "openai": "", "google": "/v1beta"}
    providers = {name: {"options": {"baseURL": addresses[name] + path}} for name, path in paths.items()}
    return {"OPENCODE_CONFIG_CONTENT": json.dumps({"provider": providers})}


# What pi's files may have beyond JSON: remarks and commas at the end. Strings stay.
BEYOND_JSON = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*|,(?=\s*[}\]])')
PI_EXTENSION = Path(__file__).with_name("pi_providers.js")
# What pi asks where its user has not said otherwise: `baseUrl` of its built-in models.
PI_PROVIDERS = {
    "anthropic": ANTHROPIC,
    "openai": OPENAI,
    "openai-codex": "https://chatgpt.com/backend-api",
    "google": f"{GEMINI}/v1beta",
    "openrouter": "https://openrouter.ai/api/v1",
}


def _pi(environ: Mapping[str, str]) -> tuple[Provider, ...]:
    """Providers that the user has named or moved are asked where models.json says. Raises ValueError where that cannot
    be read: keys of one address must not be sent to another."""
    path = Path(environ.get("PI_CODING_AGENT_DIR", "").strip() or "~/.pi/agent").expanduser() / "models.json"
    own: dict[str, str] = {}
    try:
        plain = path.read_text(encoding="utf-8")
        for _ in range(2):  # a comma may be the last but for a remark
            plain = BEYOND_JSON.sub(lambda match: match[1] or "", plain)
        providers = json.loads(plain)["providers"].items()
        own = {str(name): one["baseUrl"] for name, one in providers if isinstance(one.get("baseUrl"), str)}
    except FileNotFoundError:
        pass
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise ValueError(f"{path} is not JSON with providers, so it does not say where pi's requests go.") from None
    return tuple(Provider(name, address) for name, address in {**PI_PROVIDERS, **own}.items())


def _all(environ: Mapping[str, str]) -> tuple[Provider, ...]:
    return (
        Provider("anthropic", ANTHROPIC, "ANTHROPIC_BASE_URL"),
        Provider("openai", OPENAI, "OPENAI_BASE_URL"),
        Provider("google", GEMINI, "GOOGLE_GEMINI_BASE_URL"),
    )


def _any_variables(addresses: Addresses) -> dict[str, str]:
    return {
        "ANTHROPIC_BASE_URL": addresses["anthropic"],
        "ANTHROPIC_API_BASE": addresses["anthropic"],
        "OPENAI_BASE_URL": addresses["openai"],
        "OPENAI_API_BASE": addresses["openai"],
        "GOOGLE_GEMINI_BASE_URL": addresses["google"],
    }


CLIENTS = {
    client.name: client
    for client in (
        CapturedAgent(
            "claude",
            lambda environ: (Provider("anthropic", ANTHROPIC, "ANTHROPIC_BASE_URL"),),
            lambda addresses: {"ANTHROPIC_BASE_URL": addresses["anthropic"]},
            warning=_claude_warning,
        ),
        CapturedAgent(
            "codex",
            _codex,
            lambda addresses: {},
            lambda addresses: ["-c", f"openai_base_url={json.dumps(addresses['openai'])}"],
        ),
        CapturedAgent(
            "gemini",
            lambda environ: (
                Provider("google", GEMINI, "GOOGLE_GEMINI_BASE_URL"),
                Provider("code-assist", CODE_ASSIST, "CODE_ASSIST_ENDPOINT"),
            ),
            lambda addresses: {
                "GOOGLE_GEMINI_BASE_URL": addresses["google"],
                "CODE_ASSIST_ENDPOINT": addresses["code-assist"],
            },
        ),
        CapturedAgent("opencode", _all, _opencode),
        CapturedAgent(
            "pi",
            _pi,
            lambda addresses: {"CAPTURED_PROVIDERS": json.dumps(dict(addresses))},
            lambda addresses: ["--extension", str(PI_EXTENSION)],
        ),
        CapturedAgent("aider", _all, _any_variables),
    )
}
ANY = CapturedAgent("", _all, _any_variables)  # whatever else reads the usual variables
