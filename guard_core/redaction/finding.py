"""Finds what should not be shared in a text: secrets with a shape, values beside words like "password", personal data.

Time is in proportion to the length of the text: whatever has no fixed beginning is looked at in a window of bounded
length around a character that it must have.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from guard_core.errors import SettingError
from guard_core.redaction.kinds import INNER, PRIVATE_KEY, PRIVATE_KEY_BEGIN, PRIVATE_KEY_NAME, SHAPES

PASSWORD, CREDENTIAL, EMAIL, ACCOUNT, PHONE = (
    "password",
    "secret value",
    "e-mail address",
    "account name",
    "phone number",
)
BASIC_LOGIN, BEARER, ENCODED = "login in an address", "authorization header", "encoded secret"
PERSONAL = frozenset({EMAIL, ACCOUNT, PHONE})
LONGEST_OWN, MOST_OWN = 200, 50  # characters of a pattern of one's own, and patterns


class Match(NamedTuple):
    """A place in a text that should be hidden, by its kind; `stop` is behind it."""

    kind: str
    start: int
    stop: int


class OwnPattern(NamedTuple):
    """What a user wants hidden besides: a text, or one with `*` for a run of letters, digits and `_.-`."""

    kind: str
    pattern: re.Pattern[str]


def own_patterns(texts: Iterable[str]) -> tuple[OwnPattern, ...]:
    """Patterns from lines that a user typed: plain words, `*` stands for up to 100 letters, digits, `_`, `.` and `-`.
    Letter case does not count. Raises SettingError."""
    patterns: list[OwnPattern] = []
    for text in filter(None, map(str.strip, texts)):
        if len(text) > LONGEST_OWN or len(patterns) == MOST_OWN:
            raise SettingError(f"at most {MOST_OWN} patterns of at most {LONGEST_OWN} characters can be given")
        pieces = re.split(r"\*+", text)
        if max(map(len, pieces)) < 2 or len(pieces) > 4:
            raise SettingError(
                f"a pattern needs two characters beside “*”, and has at most three of those: {text[:40]!r}"
            )
        pattern = "[A-Za-z0-9_.-]{0,100}?".join(map(re.escape, pieces))
        ends = r"[A-Za-z0-9_.-]{0,100}" if not pieces[-1] else ""
        patterns.append(OwnPattern("own pattern", re.compile(f"{pattern}{ends}", re.IGNORECASE)))
    return tuple(patterns)


def find(text: str, own: Sequence[OwnPattern] = ()) -> list[Match]:
    """What should be hidden in a text, in its order, without overlaps: two that overlap are one."""
    spaced = text
    for escape in ("\\n", "\\r", "\\t") if "\\" in text else ():
        spaced = spaced.replace(escape, "\n ")  # what is written so in a JSON text ends a word; places stay the same
    matches = [match for search in _SEARCHES for match in search(spaced)]
    matches += _accounts(text)  # a path may have a folder whose name begins with one of these letters
    matches += [Match(item.kind, *hit.span()) for item in own for hit in item.pattern.finditer(text) if hit[0]]
    return _without_overlaps(matches)


def _without_overlaps(matches: list[Match]) -> list[Match]:
    apart: list[Match] = []
    for match in sorted(matches, key=lambda item: (item.start, -item.stop)):
        if not apart or match.start >= apart[-1].stop:
            apart.append(match)
        elif match.stop > apart[-1].stop:  # the rest of it is hidden, too
            apart[-1] = apart[-1]._replace(stop=match.stop)
    return apart


def _places(text: str, word: str) -> Iterator[int]:
    """Where a word begins in a text."""
    place = text.find(word)
    while place >= 0:
        yield place
        place = text.find(word, place + 1)


def _is_word(char: str) -> bool:
    return char.isascii() and (char.isalnum() or char == "_")


# -- secrets with a shape


def _shapes(text: str) -> Iterator[Match]:
    for shape in SHAPES:
        for word in shape.words:
            for place in _places(text, word):
                if place and _is_word(text[place - 1]):
                    continue
                if (rest := shape.rest.match(text, place + len(word))) and _is_varied(rest[0]):
                    yield Match(shape.name, place, rest.end())


def _is_varied(text: str) -> bool:
    """Is this more than a placeholder such as xxxx or 1234: enough different characters for its length."""
    return len(set(text)) >= min(8, len(text) // 3) and not re.search(
        r"(?i)example|placeholder|your|x{6}|\*{3}|0{8}", text
    )


def _private_keys(text: str) -> Iterator[Match]:
    for place in _places(text, PRIVATE_KEY_BEGIN):
        if hit := PRIVATE_KEY.match(text, place):
            yield Match(PRIVATE_KEY_NAME, place, hit.end())


def _inner_shapes(text: str) -> Iterator[Match]:
    for shape in INNER:
        for place in _places(text, shape.word):
            start = place
            while start and place - start < shape.before and _is_word(text[start - 1]):
                start -= 1
            if hit := shape.whole.match(text, start):
                yield Match(shape.name, start, hit.end())


ENCODED_TEXT = re.compile(r"[A-Za-z0-9+/_-]{24,4096}={0,2}")


def _encoded(text: str) -> Iterator[Match]:
    """Base64 of a text with a secret, one level deep."""
    for hit in ENCODED_TEXT.finditer(text):
        if (plain := decoded(hit[0])) and (next(_shapes(plain), None) or next(_private_keys(plain), None)):
            yield Match(ENCODED, *hit.span())


def decoded(text: str) -> str:
    """The text that base64 encodes; "" where it is none."""
    try:
        raw = base64.b64decode(
            text.replace("-", "+").replace("_", "/").rstrip("=") + "=" * (-len(text.rstrip("=")) % 4)
        )
        plain = raw.decode("ascii")
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return ""
    return plain if all(char.isprintable() or char in "\r\n\t" for char in plain) else ""


# -- values beside words like "password"

# "Password" in languages whose letters a JSON text may hold as \\u escapes: as they are, and so.
_ABROAD = "|".join(
    re.escape(word) + "|" + "".join(char if char.isascii() else rf"\\{{1,2}}u{ord(char):04x}" for char in word)
    for word in ("contraseña", "密码", "密碼", "口令", "パスワード", "비밀번호", "пароль")
)
_TELLING = re.compile(
    r"(?i)(?P<word>passw(?:or)?[dt]|passwd|passphrase|mot de passe|kennwort|wachtwoord|senha|pwd"
    rf"|{_ABROAD}"
    r"|(?<=_)pass(?=[\"'`\s]{0,4}[:=])|(?<![A-Za-z])pass(?=\s{0,3}=)|(?<=_)auth(?==)"  # no "PASS: TestOrders"
    r"|(?:role|master|admin|license|subscription|api|access|account)[_ -]?key|secret|token"
    r"|auth[_ -]?key|private[_ -]?key|signing[_ -]?key|encryption[_ -]?key|client[_ -]?secret|credentials?|bearer)"
    r"(?:[_-]?(?:key|value|base|id|hash|default|prod|dev|live|test|[0-9]{1,2}))?"
    r"(?:\\{0,2}[\"'`\]]){0,2}"
    r"(?:\s{0,3}(?:：|は|\\{1,2}u(?:ff1a|306f)|\svalue=|:\s{0,3}[>|]-?(?=\s)|:=|=>|==?|:"
    r"|\b(?:is|was|lautet|ist|est|es|é)\b)\s{0,3}|>|(?<=[a-z])[ \t]{1,3})"
    r"(?:\\{0,2}[\"'`]){0,1}(?:[bf](?=[\"']))?"
)
_VALUE = re.compile(r"[^\s\"'`<>\\,;&|(){}\[\]]{6,300}")
_HEADER = re.compile(r"(?i)\b(?:bearer|basic|token|ssws|apikey)\s{1,3}([A-Za-z0-9+/=_.~-]{16,2000})")
_LOGIN = re.compile(r"([A-Za-z0-9._~%!$&+-]{0,100}):([^\s/@:\"'<>]{3,200})@(?=[A-Za-z0-9.\[-])")
_NO_LOGIN = re.compile(r"(?i)^(?:\$|%|<|\{|\*|password|pass|passwd|pwd|secret|token|x+|user)\W*$|^\$|^\{|^<")
_SIGNED = re.compile(r"(?i)[?&](?:sig|signature|access_token|api_?key|token|key)=([A-Za-z0-9%+/=_.-]{20,500})")
_CODE = re.compile(
    r"(?i)^(?:os\.|process\.|self\.|this\.|env\b|environ|config|settings|request|getenv|\$|%|@|var\.|data\.|secrets\.|none|null|true|false"
    r"|undefined|string|str|optional|required|example|changeme|placeholder|redacted|your|my_|the_|test_|dummy|xxx|https?://|/|\./|~/"
    r"|\.\.\.|…|\*{3}|-{3}|new_?|old_?|get_|set_|fetch|load|read|generate|create|validate|hash|len|int)"
)
# A value of few characters beside these may be one.
_STRICT_WORDS = ("pass", "pwd", "mot de passe", "contrase", "kennwort", "wachtwoord", "senha", "\\", *"密口パ비п")
_SIGN = re.compile(r"[=:>：は]|u(?:ff1a|306f)|\b(?:is|was|lautet|ist|est|es|é)\b")
_QUOTES = "\"'`"
_QUOTED = re.compile(r"[^\s\"'`\\]{6,300}(?=\\{0,2}[\"'`])")  # what a quoted value may be, with brackets and signs
_LOGIN_BEFORE = re.compile(r"(?i)\blogin\s{1,8}\S{1,64}\s{1,8}\Z")  # in a .netrc, whose words have no sign between


# Where one of these words may begin, in lower case: looking for all of them in any case at once takes twice as long.
_BEGINNINGS = re.compile(
    r"pass|mot de|contrase|[密口パ비п]|\\u(?:5bc6|53e3|30d1|be44|043f)"
    r"|kennw|wacht|senha|pwd|auth(?==)|secret|token|bearer|credential"
    r"|(?:role|master|admin|license|subscription|api|access|account|auth|private|signing|encryption|client)[_ -]?[ks]e"
)


def _telling(text: str) -> Iterator[re.Match[str]]:
    """The words that a secret follows, without overlaps; only where one may begin are they looked for in full."""
    stop = 0
    for begin in _BEGINNINGS.finditer(_lowered(text)):
        if begin.start() >= stop and (hit := _TELLING.match(text, begin.start())):
            stop = hit.end()
            yield hit


def _lowered(text: str) -> str:
    """The text in lower case, every character at its place."""
    lower = text.lower()
    return lower if len(lower) == len(text) else "".join(char.lower() if char.isascii() else char for char in text)


def _beside_words(text: str) -> Iterator[Match]:
    for hit in _telling(text):
        quoted = _QUOTED.match(text, hit.end()) if text[hit.end() - 1] in _QUOTES else None
        if (value := quoted or _VALUE.match(text, hit.end())) is None:
            continue
        word, start, stop = hit["word"].lower(), value.start(), value.end()
        while not quoted and stop > start and text[stop - 1] in ".:!?" and stop - start > 6:
            stop -= 1
        is_password = word.startswith(_STRICT_WORDS)
        says = _SIGN.search(hit[0]) or (
            is_password and _LOGIN_BEFORE.search(text, max(0, hit.start() - 90), hit.start())
        )
        if (
            not says
            and text[max(0, hit.start() - 2) : hit.start()] != "--"
            and "-" not in text[hit.start() - 1 : hit.start()]
        ):
            continue  # "the token bucket": no sign between the words
        is_call = not quoted and stop < len(text) and text[stop] in "(["
        if is_call or not is_secret(text[start:stop], is_password=is_password):
            continue
        yield Match(PASSWORD if is_password else CREDENTIAL, start, stop)


def is_secret(value: str, *, is_password: bool) -> bool:
    """Does a value beside a word like "password" look like a secret, and not like code, a placeholder or a word."""
    if _CODE.match(value) or not _is_varied(value) or not re.search("[A-Za-z]", value):
        return False
    kinds = sum(bool(re.search(pattern, value)) for pattern in ("[a-z]", "[A-Z]", "[0-9]", r"[^A-Za-z0-9]"))
    words = r"[a-z]+(?:[-_.][a-z]+)*" if is_password else r"[a-z]+(?:[-_.][a-z]+)*[0-9]{0,2}"
    if re.fullmatch(r"[A-Za-z_][\w-]*(?:\.[A-Za-z_]\w*)+", value) or re.fullmatch(words, value):
        return False  # an attribute of something, or words
    if is_password:
        return len(value) >= 6 and kinds >= 2 and (bool(re.search("[0-9]", value)) or kinds >= 3)
    if re.fullmatch(r"[A-Za-z_]+", value) and len(value) < 24:
        return False
    return len(value) >= 16 and kinds >= 2 and entropy(value) >= LEAST_ENTROPY


LEAST_ENTROPY = (
    3.2  # bits a character: between words joined by signs (below 3.1) and random hex of 16 (above 3.2), ours
)


def entropy(text: str) -> float:
    """Bits for each character, by how often each occurs in the text itself."""
    size = len(text)
    return -sum(count / size * math.log2(count / size) for count in Counter(text).values()) if size else 0.0


_COOKIES = re.compile(r"(?i)\b(?:set-)?cookie[\"']?\s{0,2}[:=]\s{0,2}[\"']?([^\r\n\"']{1,4000})")
_COOKIE = re.compile(r"[\w.-]{1,100}=([A-Za-z0-9%+/=_.:~-]{16,2000})")


def _cookies(text: str) -> Iterator[Match]:
    """Values of cookies as varied as keys are; most cookies hold settings."""
    for header in _COOKIES.finditer(text) if "ookie" in text or "OOKIE" in text else ():
        for hit in _COOKIE.finditer(text, *header.span(1)):
            if is_secret(hit[1], is_password=False):
                yield Match(CREDENTIAL, *hit.span(1))


# Passwords that programs take without a word like "password", by the word that is searched for first.
_COMMANDS = tuple(
    (word, re.compile(rest))
    for word, rest in (
        ("redis-cli", r"redis-cli\b[^\n|;]{0,100}?\s-a\s{1,3}[\"']?([^\s\"'\\]{6,200})"),
        ("mysql", r"mysql(?:dump|admin)?\b[^\n|;]{0,100}?\s-p[\"']?([^\s\"'\\]{6,200})"),
        ("sshpass", r"sshpass\s{1,3}-p\s{0,3}[\"']?([^\s\"'\\]{6,200})"),
        ("-passin", r"-passin\s{1,3}pass:([^\s\"'\\]{6,200})"),
        ("-passout", r"-passout\s{1,3}pass:([^\s\"'\\]{6,200})"),
        ("-storepass", r"-storepass\s{1,3}[\"']?([^\s\"'\\]{6,200})"),
        ("-keypass", r"-keypass\s{1,3}[\"']?([^\s\"'\\]{6,200})"),
        ("authtoken", r"authtoken\s{1,3}([A-Za-z0-9_]{40,60})(?![A-Za-z0-9_])"),
        ("docker login", r"docker login\b[^\n|;]{0,100}?\s-p[ =]?[\"']?([^\s\"'\\]{6,200})"),
        ("az login", r"az login\b[^\n|;]{0,100}?\s-p[ =][\"']?([^\s\"'\\]{6,200})"),
        ("ldap", r"ldap(?:search|add|modify|delete|whoami)\b[^\n|;]{0,200}?\s-w[ ]?[\"']?([^\s\"'\\]{6,200})"),
        ("smbclient", r"smbclient\b[^\n|;]{0,200}?\s-U[ ]?[\"']?[^\s%\"'\\]{1,100}%([^\s\"'\\]{6,200})"),
        (
            "htpasswd",
            r"htpasswd\s{1,3}-[A-Za-z]{0,6}b[A-Za-z]{0,6}\s{1,3}\S{1,200}\s{1,3}\S{1,100}\s{1,3}[\"']?([^\s\"'\\]{6,200})",
        ),
        ("7z", r"7za?\s[^\n|;]{0,200}?\s-p[\"']?([^\s\"'\\]{6,200})"),
        ("unzip", r"unzip\b[^\n|;]{0,100}?\s-P[ ]?[\"']?([^\s\"'\\]{6,200})"),
        ("ConvertTo-SecureString", r"ConvertTo-SecureString\s{1,3}(?:-String\s{1,3})?\\{0,2}[\"']([^\s\"'\\]{6,200})"),
        ("configure set", r"configure set aws_(?:secret_access_key|session_token)\s{1,3}([^\s\"'\\]{20,2000})"),
        ("setx ", r"setx\s{1,3}\w{0,60}(?i:key|token|secret|passw\w{1,4})\s{1,3}\\{0,2}[\"']?([^\s\"'\\]{6,300})"),
        ("ENV ", r"ENV\s{1,3}\w{0,60}(?:KEY|TOKEN|SECRET|PASS|PASSWORD)\s{1,3}\\{0,2}[\"']?([^\s\"'\\]{6,300})"),
        ("etPassword", r"etPassword\(\s{0,3}\\{0,2}[\"']([^\s\"'\\]{6,200})"),  # setPassword("…")
        ("http -a", r"http -a[ =]?[\"']?[^\s:\"'\\]{1,100}:([^\s\"'\\]{6,200})"),
        ("curl", r"curl\b[^\n|;]{0,200}?\s(?:-u|--user)[ =][\"']?[^\s:\"'\\]{1,100}:([^\s\"'\\]{6,200})"),
    )
)


def _commands(text: str) -> Iterator[Match]:
    """What follows the options that `_COMMANDS` lists, where it may be a password."""
    for word, pattern in _COMMANDS:
        for place in _places(text, word):
            if (hit := pattern.match(text, place)) and is_secret(hit[1], is_password=True):
                yield Match(PASSWORD, *hit.span(1))


_STATEMENT = re.compile(r"(?i)\b(?:PASSWORD|IDENTIFIED\s{1,3}BY)\s{1,3}\\{0,2}'([^\s\"'\\]{6,200})\\{0,2}'")  # of SQL
_CHANGED = re.compile(r"[\w.-]{1,64}:([^\s:\"'\\]{6,200})\\{0,2}[\"']?\s{0,3}\|\s{0,3}(?:sudo\s{1,3})?chpasswd")


def _statements(text: str) -> Iterator[Match]:
    """Passwords that a database or `chpasswd` is to set."""
    upper = text.upper()
    hits = list(_STATEMENT.finditer(text)) if "PASSWORD" in upper or "IDENTIFIED" in upper else []
    for place in _places(text, "chpasswd"):
        hits += _CHANGED.finditer(text, max(0, place - 300), place + len("chpasswd"))
    for hit in hits:
        if is_secret(hit[1], is_password=True):
            yield Match(PASSWORD, *hit.span(1))


_PORT = re.compile(r":(?:[0-9]{2,5}|\*):(?=[A-Za-z*])")
_HOST = re.compile(r"(?:\A|(?<=[\s\"'`]))[A-Za-z0-9.*_-]{1,100}\Z")
_PASSWORD_LINE = re.compile(r"[A-Za-z*][\w*-]{0,62}:[A-Za-z*][\w*.@-]{0,62}:([^\s:\"'`\\]{6,100})(?=[\s\"'`\\]|\Z)")


def _password_lines(text: str) -> Iterator[Match]:
    """Lines of a .pgpass: host, port, database, account, password."""
    for port in _PORT.finditer(text):
        if _HOST.search(text, max(0, port.start() - 101), port.start()) is None:
            continue
        hit = _PASSWORD_LINE.match(text, port.end())
        if hit and is_secret(hit[1], is_password=True):
            yield Match(PASSWORD, *hit.span(1))


def _headers(text: str) -> Iterator[Match]:
    """Keys behind "Bearer" and its kin; words of prose that may follow those have no digit."""
    lower = text.lower()
    if "authorization" in lower or "bearer" in lower:
        for hit in _HEADER.finditer(text):
            if re.search("[0-9]", hit[1]) and _is_varied(hit[1]) and entropy(hit[1]) >= LEAST_ENTROPY:
                yield Match(BEARER, *hit.span(1))


def _logins(text: str) -> Iterator[Match]:
    for place in _places(text, "://"):
        hit = _LOGIN.match(text, place + 3)
        if hit is None or hit[1] == hit[2]:  # postgres:postgres, guest:guest: with what every installation begins
            continue
        if not _NO_LOGIN.match(hit[2]):
            yield Match(BASIC_LOGIN, *hit.span(2))
    if "=" in text:
        for hit in _SIGNED.finditer(text):
            if is_secret(hit[1], is_password=False):
                yield Match(CREDENTIAL, *hit.span(1))


# -- personal data

_LOCAL = re.compile(r"[A-Za-z0-9._%+-]{1,64}\Z")
_DOMAIN = re.compile(r"(?:[^\W_](?:(?:[^\W_]|-){0,61}[^\W_])?\.){1,8}[A-Za-z]{2,24}(?![A-Za-z0-9@])")
_NOBODY = re.compile(
    r"(?i)^(?:git|noreply|no-reply|user|username|you|your\.?name|me|foo|bar|name|someone|test|admin|root|npm|postgres)@"
    r"|@(?:[\w-]+\.)*(?:example\.(?:com|org|net)|localhost|test|invalid|[\w-]+\.example|users\.noreply\.github\.com|host|domain\.com|email\.com)$"
    r"|\.(?:py|js|ts|md|png|jpe?g|webp|gif|svg|css|html|json|txt|service|timer|go|rs|sh|yml|yaml|lock)$"
)


def _emails(text: str) -> Iterator[Match]:
    for place in _places(text, "@"):
        local = _LOCAL.search(text, max(0, place - 64), place)
        domain = _DOMAIN.match(text, place + 1)
        if not local or not domain:
            continue
        start = local.start()
        while text[start] in ".-%+" and start < place - 1:
            start += 1
        if not _NOBODY.search(text[start : domain.end()]) and text[max(0, start - 3) : start] != "://":
            yield Match(EMAIL, start, domain.end())


_HOMES = re.compile(
    r"(?:/home\\{0,2}/|/Users\\{0,2}/|[A-Za-z]:(?:\\{1,4}|/)Users(?:\\{1,4}|/)|\\\\[A-Za-z0-9.-]{1,63}\\{1,4}(?:homes?|[Uu]sers)\$?\\{1,4})"
    r"([A-Za-z0-9][A-Za-z0-9._-]{0,62}[A-Za-z0-9]|[A-Za-z])"
)
# The same path as the name of a folder, as Claude Code keeps its sessions: `-home-jo-orders`, `C--Users-jo-orders`.
_FLAT_HOMES = re.compile(r"[/\\](?:[A-Za-z]-)?-(?:home|Users)-([A-Za-z0-9_]{1,62})")
# Names of accounts that belong to no person, in lower case.
_SHARED_NAMES = frozenset(
    re.findall(
        r"\S+",
        """
    user users username ubuntu root runner app apps work node vscode admin administrator dev developer test tester
    me you name shared public default guest ec2-user jovyan circleci travis jenkins gitpod codespace coder agent
    runneradmin sandbox claude opam linuxbrew docker build builder foo bar example data git www someone yourname
    your-name your_name home postgres ansible debian pi vagrant student oai model swe workspace openhands
    """,
    )
)


def _accounts(text: str) -> Iterator[Match]:
    """The names of people in paths of home folders."""
    if "home" in text or "sers" in text:
        for hit in (*_HOMES.finditer(text), *_FLAT_HOMES.finditer(text)):
            if hit[1].lower() not in _SHARED_NAMES:
                yield Match(ACCOUNT, *hit.span(1))


_PHONES = re.compile(
    r"(?<![\w.+/=-])"
    r"(?:(?:\+|00)[1-9][0-9]{0,2}[ .-]?(?:\([0-9]{1,4}\)[ .-]?)?[0-9]{1,5}[ .-](?:[0-9]{2,5}[ .-]){0,4}[0-9]{2,8}"
    r"|\+[1-9][0-9]{9,13}"
    r"|(?:1-)?\([2-9][0-9]{2}\) ?[2-9][0-9]{2}[-. ][0-9]{4}"
    r"|(?:1[-.])?[2-9][0-9]{2}([-.])[2-9][0-9]{2}\1[0-9]{4})(?![\w/=-]|\.[0-9])"
)


_PHONE_WORDS = ("tel", "phone", "mobil", "handy", "cell", "fax", "whatsapp")  # "telefon" and "telephone" begin so
_PHONE_BESIDE = re.compile(
    r"[a-z]{0,6}[.:]{1,2}\s{0,3}(?![0-9]{4}-[0-9]{2}-)"
    r"(\(?[0-9](?: ?[/().-] ?| )?(?:[0-9]{1,6}(?: ?[/().-] ?| )){1,5}[0-9]{2,8})(?![\w/=-])"
)


def _phones(text: str) -> Iterator[Match]:
    lower = _lowered(text)
    for word in _PHONE_WORDS:
        for place in _places(lower, word):
            if place and _is_word(text[place - 1]):
                continue
            hit = _PHONE_BESIDE.match(text, place + len(word))
            if hit and 8 <= sum(char.isdigit() for char in hit[1]) <= 15:
                yield Match(PHONE, *hit.span(1))
    for hit in _PHONES.finditer(text):
        if 9 <= sum(char.isdigit() for char in hit[0]) <= 15:
            yield Match(PHONE, *hit.span())


_SEARCHES = (
    _private_keys,
    _shapes,
    _inner_shapes,
    _logins,
    _headers,
    _cookies,
    _commands,
    _statements,
    _password_lines,
    _beside_words,
    _encoded,
    _emails,
    _phones,
)
