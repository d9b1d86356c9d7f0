"""Typed readers of environment variables that fail loudly, in one sentence that names the variable."""

from __future__ import annotations

import ipaddress
import os
import re
from importlib.util import find_spec
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured


def text(name: str, default: str = "") -> str:
    """The value of a variable, without spaces around it; `default` where that is empty."""
    return os.environ.get(name, "").strip() or default


def secret(name: str) -> str:
    """The value of a variable, or what is in the file that NAME_FILE names. Raises ImproperlyConfigured for both, and
    for a file that cannot be read."""
    path = text(f"{name}_FILE")
    if not path:
        return text(name)
    if text(name):
        raise ImproperlyConfigured(f"{name} and {name}_FILE are both set; use one of them.")
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        raise ImproperlyConfigured(f"{name}_FILE={path!r} cannot be read: {error}.") from None


def check_extra(name: str, extra: str, module: str) -> None:
    """Raises ImproperlyConfigured where an extra of the package that a variable needs is not installed."""
    if find_spec(module) is None:
        raise ImproperlyConfigured(
            f"{name} needs the extra `{extra}`, which is not installed: pip install 'compaction-inspector[{extra}]'."
        )


def issuer(name: str) -> str:
    """The address of an OpenID provider: https, or http on this machine. Raises ImproperlyConfigured otherwise."""
    value = text(name)
    if not re.fullmatch(r"(https://[^/?#@]+|http://(127\.0\.0\.1|localhost|\[::1\])(:[0-9]{1,5})?)(/[^?#]*)?|", value):
        raise ImproperlyConfigured(
            f"{name}={value!r} is not the address of an issuer, such as https://login.example/team."
        )
    return value


def flag(name: str, default: bool = False) -> bool:
    """A yes or no. Raises ImproperlyConfigured for anything else."""
    value = text(name).lower()
    if value in ("", "0", "no", "false", "off"):
        return default if value == "" else False
    if value in ("1", "yes", "true", "on"):
        return True
    raise ImproperlyConfigured(f"{name}={value!r} is neither yes nor no; use 1 or 0.")


def whole(name: str, default: int, low: int, high: int) -> int:
    """A whole number from `low` to `high`. Raises ImproperlyConfigured for anything else."""
    value = text(name)
    if not value:
        return default
    if not (value.isascii() and value.isdigit() and low <= int(value) <= high):
        raise ImproperlyConfigured(f"{name}={value!r} is not a whole number from {low} to {high}.")
    return int(value)


def choice(name: str, default: str, allowed: tuple[str, ...]) -> str:
    """One of a few words. Raises ImproperlyConfigured for anything else."""
    value = text(name, default)
    if value not in allowed:
        raise ImproperlyConfigured(f"{name}={value!r} is none of {', '.join(filter(None, allowed))}.")
    return value


def names(name: str, default: list[str]) -> list[str]:
    """A list, commas between its items; `default` where it is empty."""
    return [item.strip() for item in text(name).split(",") if item.strip()] or default


def networks(name: str, default: list[str]) -> list[str]:
    """A list of addresses and networks such as 10.0.0.0/8. Raises ImproperlyConfigured for anything else."""
    listed = names(name, default)
    for item in listed:
        try:
            ipaddress.ip_network(item, strict=False)
        except ValueError:
            raise ImproperlyConfigured(
                f"{name}: {item!r} is neither an address nor a network such as 10.0.0.0/8."
            ) from None
    return listed


def origins(name: str) -> list[str]:
    """A list of origins as browsers name them, `https://host:port`. Raises ImproperlyConfigured for anything else."""
    values = names(name, [])
    for value in values:
        if not re.fullmatch(r"https?://[a-z0-9.-]+(:[0-9]{1,5})?", value):
            raise ImproperlyConfigured(
                f"{name} names {value!r}; an origin is written https://host or https://host:port."
            )
    return values


def folder(name: str, default: Path) -> Path:
    """An absolute path; `~` is the home folder."""
    return Path(text(name) or default).expanduser().resolve()
