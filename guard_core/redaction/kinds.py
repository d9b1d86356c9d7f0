"""The shapes of secrets that have one: what each begins with, and what follows.

Each shape is the one that its service gives its keys. A pattern takes time in proportion to its text: it begins with a
word that is searched for first, every repetition is bounded, and no two neighbouring parts take the same character.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_A = "[A-Za-z0-9]"
_U = "[A-Za-z0-9_-]"
_X = "[0-9a-f]"


class SecretShape(NamedTuple):
    """A kind of secret: its name for people, the words that one begins with, and the pattern of what follows."""

    name: str
    words: tuple[str, ...]
    rest: re.Pattern[str]


def _shape(name: str, words: str, rest: str) -> SecretShape:
    return SecretShape(name, tuple(words.split()), re.compile(rest))


SHAPES: tuple[SecretShape, ...] = (
    _shape("AWS key id", "AKIA ASIA ABIA ACCA", r"[A-Z2-7]{16}(?![A-Za-z0-9])"),
    _shape("GitHub token", "ghp_ gho_ ghu_ ghs_ ghr_", rf"{_A}{{36,251}}"),
    _shape("GitHub token", "github_pat_", r"[A-Za-z0-9_]{22,251}"),
    _shape("GitLab token", "glpat- gldt- glrt- glptt- glcbt- glft- glsoat-", r"[A-Za-z0-9_.=-]{20,300}"),
    _shape("Slack token", "xoxb- xoxp- xoxa- xoxr- xoxs- xoxe- xapp-", r"[A-Za-z0-9-]{10,250}"),
    _shape("Slack webhook", "https://hooks.slack.com/services/", r"[A-Za-z0-9/]{20,100}"),
    _shape(
        "Discord webhook",
        "https://discord.com/api/webhooks/ https://discordapp.com/api/webhooks/",
        rf"[0-9]{{15,20}}/{_U}{{40,100}}",
    ),
    _shape("Stripe key", "sk_live_ rk_live_ sk_test_ rk_test_ whsec_", rf"{_A}{{16,250}}"),
    _shape("Anthropic key", "sk-ant-", rf"{_U}{{20,250}}"),
    _shape("OpenAI key", "sk-proj- sk-svcacct- sk-admin-", rf"{_U}{{20,250}}"),
    _shape("OpenRouter key", "sk-or-v1-", rf"{_X}{{40,80}}"),
    _shape("API key", "sk-", rf"{_A}{{32,64}}(?![A-Za-z0-9-])"),
    _shape("Google API key", "AIza", rf"{_U}{{35}}(?![A-Za-z0-9_-])"),
    _shape("Google OAuth token", "ya29.", rf"{_U}{{20,500}}"),
    _shape("Google OAuth secret", "GOCSPX-", rf"{_U}{{28}}"),
    _shape("Hugging Face token", "hf_", r"[A-Za-z]{34}(?![A-Za-z0-9])"),
    _shape("npm token", "npm_", rf"{_A}{{36}}(?![A-Za-z0-9])"),
    _shape("PyPI token", "pypi-AgE", rf"{_U}{{50,1000}}"),
    _shape("RubyGems key", "rubygems_", rf"{_X}{{48}}"),
    _shape("DigitalOcean token", "dop_v1_ doo_v1_ dor_v1_", rf"{_X}{{64}}"),
    _shape("SendGrid key", "SG.", rf"{_U}{{22}}\.{_U}{{43}}"),
    _shape("Mailgun key", "key-", rf"{_X}{{32}}(?![0-9a-zA-Z])"),
    _shape("Twilio key", "SK AC", rf"{_X}{{32}}(?![0-9a-zA-Z])"),
    _shape("Square token", "sq0atp- sq0csp-", rf"{_U}{{22,43}}"),
    _shape("Shopify token", "shpat_ shpca_ shppa_ shpss_", r"[a-fA-F0-9]{32}"),
    _shape("Atlassian token", "ATATT3 ATCTT3", r"[A-Za-z0-9_=-]{60,300}"),
    _shape("Linear key", "lin_api_", rf"{_A}{{40}}"),
    _shape("Notion token", "secret_ ntn_", rf"{_A}{{43,50}}(?![A-Za-z0-9_])"),
    _shape("Figma token", "figd_", rf"{_U}{{35,60}}"),
    _shape("Postman key", "PMAK-", rf"{_X}{{24}}-{_X}{{34}}"),
    _shape("Databricks token", "dapi", rf"{_X}{{32}}(?:-\d)?(?![0-9a-zA-Z])"),
    _shape("New Relic key", "NRAK- NRII- NRJS-", rf"{_U}{{19,40}}"),
    _shape("Grafana token", "glsa_", rf"{_A}{{32}}_[0-9a-fA-F]{{8}}"),
    _shape("Grafana token", "glc_", r"eyJ[A-Za-z0-9+/=]{20,400}"),
    _shape("Sentry token", "sntrys_ sntryu_", r"[A-Za-z0-9+/=_]{40,400}"),
    _shape("Vault token", "hvs. hvb. hvr.", rf"{_U}{{24,300}}"),
    _shape("Doppler token", "dp.pt. dp.st. dp.ct. dp.sa.", r"[A-Za-z0-9.]{40,60}"),
    _shape("PlanetScale token", "pscale_tkn_ pscale_pw_", r"[A-Za-z0-9_.=-]{32,64}"),
    _shape("Supabase key", "sbp_", rf"{_X}{{40}}"),
    _shape("Groq key", "gsk_", rf"{_A}{{52}}"),
    _shape("xAI key", "xai-", rf"{_A}{{70,90}}"),
    _shape("Replicate token", "r8_", rf"{_A}{{37}}"),
    _shape("Perplexity key", "pplx-", rf"{_A}{{48}}"),
    _shape("Docker token", "dckr_pat_", rf"{_U}{{27}}"),
    _shape("Fly token", "FlyV1 fm2_", r"[ A-Za-z0-9+/=_,]{40,1000}"),
    _shape("age key", "AGE-SECRET-KEY-1", r"[A-Z0-9]{58}"),
    _shape("AWS Bedrock key", "ABSK", r"[A-Za-z0-9+/]{100,200}={0,2}"),
    _shape("LangSmith key", "lsv2_pt_ lsv2_sk_", rf"{_X}{{32}}_{_X}{{10}}"),
    _shape("Tavily key", "tvly-dev- tvly-prod- tvly-", rf"{_U}{{20,60}}"),
    _shape("Supabase key", "sb_secret_", rf"{_U}{{20,60}}"),
    _shape("Together key", "tgp_v1_", rf"{_U}{{40,60}}"),
    _shape("Fireworks key", "fw_", rf"(?=[A-Za-z]{{0,20}}[0-9]){_A}{{22,30}}(?![A-Za-z0-9_-])"),
    _shape("Brave key", "BSA", rf"(?=[A-Za-z_-]{{0,20}}[0-9]){_U}{{28}}(?![A-Za-z0-9_-])"),
    _shape("Slack token", "xoxc- xoxd-", r"[A-Za-z0-9%/+=-]{20,400}"),
    _shape("Teams webhook", "https://", r"[a-z0-9-]{1,60}\.webhook\.office\.com/webhookb2/[A-Za-z0-9@/-]{60,250}"),
    _shape("Zapier webhook", "https://hooks.zapier.com/hooks/catch/", r"[0-9]{4,12}/[A-Za-z0-9]{5,12}"),
    _shape("Airtable token", "pat", rf"{_A}{{14}}\.{_X}{{64}}"),
    _shape("Asana token", "0/ 1/ 2/", rf"[0-9]{{13,17}}(?:/[0-9]{{13,17}})?:{_X}{{32}}(?![0-9a-zA-Z])"),
    _shape("Bitbucket password", "ATBB", rf"{_A}{{32}}(?![A-Za-z0-9])"),
    _shape("HubSpot token", "pat-na1- pat-eu1-", rf"{_X}{{8}}(?:-{_X}{{4}}){{3}}-{_X}{{12}}"),
    _shape("Pulumi token", "pul-", rf"{_X}{{40}}"),
    _shape("CircleCI token", "CCIPAT_ CCIPRJ_", rf"{_A}{{22}}_{_X}{{40}}"),
    _shape("Buildkite token", "bkua_ bkat_", r"[A-Za-z0-9]{40,64}"),
    _shape("Netlify token", "nfp_ nfc_ nfo_", rf"{_A}{{36,40}}(?![A-Za-z0-9])"),
    _shape("Vercel token", "vercel_blob_rw_", rf"{_A}{{16}}_{_A}{{24,40}}"),
    _shape("Vercel token", "vcp_ vci_ vca_ vcr_ vck_", rf"{_A}{{40,64}}(?![A-Za-z0-9])"),
    _shape("Render key", "rnd_", rf"{_A}{{28,40}}(?![A-Za-z0-9_])"),
    _shape("Contentful token", "CFPAT-", rf"{_U}{{43}}"),
    _shape("Brevo key", "xkeysib- xsmtpsib-", rf"{_X}{{64}}-{_A}{{16}}"),
    _shape("Shippo token", "shippo_live_ shippo_test_", rf"{_X}{{40}}"),
    _shape("Prefect token", "pnu_ pnb_", rf"{_A}{{36}}(?![A-Za-z0-9_])"),
    _shape("Typeform token", "tfp_", r"[A-Za-z0-9_.=-]{40,80}"),
    _shape("NVIDIA key", "nvapi-", rf"{_U}{{50,100}}"),
    _shape("Cerebras key", "csk-", rf"{_A}{{40,60}}(?![A-Za-z0-9-])"),
    _shape("Jina key", "jina_", rf"{_A}{{50,70}}(?![A-Za-z0-9_])"),
    _shape("Pinecone key", "pcsk_", rf"{_A}{{5,8}}_{_A}{{50,80}}"),
    _shape("Dynatrace token", "dt0c01. dt0s01. dt0s16.", r"[A-Z0-9]{8,24}\.[A-Z0-9]{64}"),
    _shape("1Password token", "ops_eyJ", r"[A-Za-z0-9+/]{200,4000}={0,3}"),
    _shape("1Password key", "A3-", r"[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}"),
    _shape("Dropbox token", "sl.", r"[A-Za-z0-9_=.-]{120,2000}"),
    _shape("Infracost key", "ico-", rf"{_A}{{32}}(?![A-Za-z0-9-])"),
    _shape("Cloudflare origin key", "v1.0-", rf"{_X}{{24}}-{_X}{{146}}"),
    _shape("Facebook token", "EAAG EAAC EAAM", rf"{_A}{{90,400}}"),
    _shape("Square token", "EAAA", rf"{_U}{{60}}(?![A-Za-z0-9_-])"),
    _shape("Flutterwave key", "FLWSECK- FLWSECK_TEST-", rf"{_A}{{12,40}}-X"),
    _shape("Scalingo token", "tk-us-", rf"{_U}{{48}}"),
    _shape("EasyPost key", "EZAK EZTK", rf"{_A}{{54}}"),
    _shape("ClickHouse key", "4b1d", rf"{_A}{{38}}(?![A-Za-z0-9])"),
    _shape("Harness token", "pat. sat.", rf"{_U}{{22}}\.{_X}{{24}}\.{_A}{{20}}"),
    _shape("Artifactory key", "AKCp", rf"{_A}{{69}}"),
    _shape("Alibaba key id", "LTAI", rf"{_A}{{20}}(?![A-Za-z0-9])"),
    _shape("NuGet key", "oy2", r"[a-z0-9]{43}(?![A-Za-z0-9])"),
    _shape("Clojars token", "CLOJARS_", rf"{_A}{{60}}"),
    _shape("OpenShift token", "sha256~", rf"{_U}{{43}}"),
    _shape("Sourcegraph token", "sgp_", rf"(?:(?:{_X}{{16}}|local)_)?{_X}{{40}}"),
    _shape("SonarQube token", "squ_ sqp_ sqa_", rf"{_X}{{40}}"),
    _shape("ReadMe key", "rdme_", r"[a-z0-9]{70}"),
    _shape("Frame.io token", "fio-u-", rf"{_U}{{64}}"),
    _shape("Duffel token", "duffel_live_ duffel_test_", rf"{_U}{{43}}"),
    _shape("Resend key", "re_", rf"(?=[A-Za-z]{{0,7}}[A-Z0-9]){_A}{{8}}_{_A}{{24}}(?![A-Za-z0-9_])"),
    _shape("PostHog key", "phx_", rf"{_A}{{40,50}}"),
    _shape("Firecrawl key", "fc-", rf"{_X}{{32}}(?![0-9a-zA-Z-])"),
    _shape("Apify token", "apify_api_", rf"{_A}{{34,40}}"),
    _shape("Mapbox token", "sk.eyJ", rf"{_U}{{40,200}}\.{_U}{{20,30}}"),
    _shape("Amazon login secret", "amzn1.oa2-cs.v1.", rf"{_X}{{64}}"),
    _shape("MongoDB Atlas secret", "mdb_sa_sk_", rf"{_U}{{36,50}}"),
    _shape(
        "password hash",
        "$6$ $5$",
        r"(?:rounds=[0-9]{1,9}\$)?[A-Za-z0-9./]{1,16}\$(?:[A-Za-z0-9./]{86}|[A-Za-z0-9./]{43})",
    ),
    _shape("password hash", "$2a$ $2b$ $2y$", r"[0-9]{2}\$[A-Za-z0-9./]{53}"),
    _shape("PuTTY key", "Private-Lines:", r"\s{1,3}[0-9]{1,3}(?:\s{1,3}[A-Za-z0-9+/=]{4,64}){1,60}"),
    _shape("Django secret key", "django-insecure-", r"[A-Za-z0-9!@#$%^&*(\-_=+)]{30,80}"),
    _shape("JSON web token", "eyJ", rf"{_U}{{10,2000}}\.eyJ{_U}{{4,8000}}\.{_U}{{6,2000}}"),
)
# A private key, whole or cut off. Lines may be written as "\n" in a JSON text.
PRIVATE_KEY_BEGIN = "-----BEGIN "
PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?:[A-Za-z0-9+/=\s\\:,.()]|-(?!-)){0,20000}"
    r"(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----)?"
)
PRIVATE_KEY_NAME = "private key"


class Inner(NamedTuple):
    """A kind of secret whose word is within it, at most `before` characters behind its beginning."""

    name: str
    word: str
    before: int
    whole: re.Pattern[str]


INNER: tuple[Inner, ...] = (
    Inner("Telegram token", ":AA", 10, re.compile(r"[0-9]{8,10}:AA[A-Za-z0-9_-]{33}(?![A-Za-z0-9_-])")),
    Inner("Mailchimp key", "-us", 32, re.compile(rf"{_X}{{32}}-us[0-9]{{1,2}}(?![A-Za-z0-9_-])")),
    Inner("Terraform token", ".atlasv1.", 14, re.compile(rf"{_A}{{14}}\.atlasv1\.{_U}{{60,70}}")),
    Inner("Azure DevOps token", "JQQJ99", 52, re.compile(rf"{_A}{{52}}JQQJ99{_A}{{24}}(?![A-Za-z0-9])")),
)
