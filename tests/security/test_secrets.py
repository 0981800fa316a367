# SPDX-License-Identifier: Apache-2.0
"""Keys and tokens that people paste are masked before anything of them is stored."""

from __future__ import annotations

import contextlib
import logging
import re
from pathlib import Path
from typing import Any

import pytest
from goodbot.api.events import CaptureEvent, OrderKey, RatingEvent, RatingKind
from goodbot.base.errors import GoodbotError
from goodbot.base.redact import _PREFIXED, _SHAPES, redact, redact_beginning
from goodbot.cli.backup.make import make
from goodbot.config.secrets import SecretStore
from goodbot.daemon import control
from goodbot.store import turns
from goodbot_connectors.claude_code.sessions import Session as ClaudeSession
from goodbot_connectors.claude_code.sessions import SessionAnswer
from goodbot_connectors.codex.session import Session as CodexSession

from tests.architecture.source import ROOT
from tests.core.builders import CHANNEL, OWNER, Bot, open_bot
from tests.support import within

_WORD = "C4naryPq7" * 12
_HEX = "c4a7e" * 16
_BIG = "C4NARY" * 12
_SMALL = "c4nary" * 12
_UUID = "c4a7e123-c4a7-4e12-83c4-a7e123c4a7e1"
SECRETS = {
    "OpenAI": f"sk-{_WORD[:48]}",
    "OpenAI, a project's": f"sk-proj-{_WORD[:70]}-x_{_WORD[:70]}",
    "OpenAI, a service's": f"sk-svcacct-{_WORD[:90]}",
    "Anthropic": f"sk-ant-api03-{_WORD[:80]}_x-AA",
    "OpenRouter": f"sk-or-v1-{_HEX[:64]}",
    "Hugging Face": f"hf_{_WORD[:34]}",
    "Groq": f"gsk_{_WORD[:52]}",
    "xAI": f"xai-{_WORD[:80]}",
    "Perplexity": f"pplx-{_WORD[:48]}",
    "Cerebras": f"csk-{_WORD[:48]}",
    "Replicate": f"r8_{_WORD[:37]}",
    "NVIDIA": f"nvapi-{_WORD[:50]}_x-{_WORD[:9]}",
    "Tavily": f"tvly-{_WORD[:32]}",
    "ElevenLabs": f"sk_{_HEX[:48]}",
    "LangSmith": f"lsv2_pt_{_HEX[:32]}_{_HEX[:10]}",
    "Pinecone": f"pcsk_{_WORD[:9]}_{_WORD[:60]}",
    "Together": f"tgp_v1_{_WORD[:43]}",
    "goodbot": f"gb_{_WORD[:43]}",
    "GitHub, a person's": f"ghp_{_WORD[:36]}",
    "GitHub, OAuth": f"gho_{_WORD[:36]}",
    "GitHub, an app's user": f"ghu_{_WORD[:36]}",
    "GitHub, an app's": f"ghs_{_WORD[:36]}",
    "GitHub, to renew": f"ghr_{_WORD[:76]}",
    "GitHub, fine": f"github_pat_11{_WORD[:20]}_{_WORD[:59]}",
    "GitLab": f"glpat-{_WORD[:20]}",
    "GitLab, a runner's": f"glrt-{_WORD[:20]}",
    "npm": f"npm_{_WORD[:36]}",
    "PyPI": f"pypi-AgEIcHlwaS5vcmc{_WORD}",
    "Docker": f"dckr_pat_{_WORD[:27]}-{_WORD[:20]}",
    "RubyGems": f"rubygems_{_HEX[:48]}",
    "DigitalOcean": f"dop_v1_{_HEX[:64]}",
    "Atlassian": f"ATATT3{_WORD}=",
    "Bitbucket": f"ATBB{_WORD[:32]}",
    "Sentry": f"sntrys_{_WORD[:60]}",
    "Postman": f"PMAK-{_WORD[:24]}{_WORD[:34]}",
    "Figma": f"figd_{_WORD[:43]}",
    "Grafana": f"glsa_{_WORD[:32]}_{_HEX[:8]}",
    "Tailscale": f"tskey-auth-{_WORD[:40]}",
    "Supabase": f"sbp_{_HEX[:40]}",
    "Slack, a bot's": f"xoxb-123456789012-{_WORD[:24]}",
    "Slack, a person's": f"xoxp-123456789012-{_WORD[:24]}",
    "Slack, an app's": f"xapp-1-A1-{_WORD[:60]}",
    "Slack, to renew": f"xoxe-1-{_WORD[:60]}",
    "Slack, a browser's": f"xoxd-{_WORD[:60]}",
    "Telegram": f"1234567890:AA{_WORD[:33]}",
    "Discord": f"MTIzNDU2Nzg5MDEyMzQ1Njc4.G{_WORD[:5]}.{_WORD[:38]}",
    "AWS": f"AKIA{_BIG[:16]}",
    "AWS, for a while": f"ASIA{_BIG[:16]}",
    "Google": f"AIza{_WORD[:35]}",
    "Google, OAuth": f"ya29.{_WORD}",
    "Google, a client's": f"GOCSPX-{_WORD[:28]}",
    "Azure": f"AccountKey={_WORD[:86]}==",
    "Databricks": f"dapi{_HEX[:32]}",
    "Vault": f"hvs.{_WORD[:90]}",
    "Doppler": f"dp.pt.{_WORD[:43]}",
    "Typeform": f"tfp_{_WORD[:44]}",
    "Stripe": f"sk_live_{_WORD[:24]}",
    "Stripe, a test's": f"sk_test_{_WORD[:24]}",
    "Stripe, restricted": f"rk_live_{_WORD[:24]}",
    "Standard Webhooks": f"whsec_{_WORD[:32]}",
    "Square": f"sq0atp-{_WORD[:22]}",
    "Shopify": f"shpat_{_HEX[:32]}",
    "SendGrid": f"SG.{_WORD[:22]}.{_WORD[:43]}",
    "Mailgun": f"key-{_HEX[:32]}",
    "Linear": f"lin_api_{_WORD[:40]}",
    "Notion": f"ntn_{_WORD[:46]}",
    "Notion, older": f"secret_{_WORD[:43]}",
    "OpenAI, an admin's": f"sk-admin-{_WORD[:70]}",
    "OpenAI, a user's": f"sk-None-{_WORD[:48]}",
    "Langfuse": f"sk-lf-{_UUID}",
    "Hugging Face, an organization's": f"api_org_{_WORD[:34]}",
    "Vercel": f"vck_{_WORD[:56]}",
    "RunPod": f"rpa_{_WORD[:46]}",
    "LangSmith, a service's": f"lsv2_sk_{_HEX[:32]}_{_HEX[:10]}",
    "Jina": f"jina_{_HEX[:32]}{_WORD[:28]}",
    "Weights & Biases": f"wandb_v1_{_WORD[:27]}_{_WORD[:50]}",
    "Fireworks": f"fw_{_WORD[:22]}",
    "Cursor": f"key_{_HEX[:64]}",
    "Firecrawl": f"fc-{_HEX[:32]}",
    "Voyage": f"pa-{_WORD[:30]}_{_WORD[:12]}",
    "PostHog": f"phx_{_WORD[:43]}",
    "PostHog, a project's": f"phc_{_WORD[:43]}",
    "Bitbucket, a repository's": f"ATCTT3{_WORD}=",
    "Figma, OAuth": f"figo_{_WORD[:43]}",
    "Figma, a user's": f"figu_{_WORD[:43]}",
    "Docker, an organization's": f"dckr_oat_{_WORD[:32]}_{_WORD[:10]}",
    "PlanetScale": f"pscale_tkn_{_WORD[:43]}",
    "PlanetScale, a password": f"pscale_pw_{_WORD[:43]}",
    "PlanetScale, OAuth": f"pscale_oauth_{_WORD[:43]}",
    "CircleCI": f"CCIPAT_{_WORD[:22]}_{_HEX[:40]}",
    "CircleCI, a project's": f"CCIPRJ_{_WORD[:22]}_{_HEX[:40]}",
    "Netlify": f"nfp_{_WORD[:36]}",
    "1Password": f"ops_eyJ{_WORD}",
    "GitLab, with a sum": f"glpat-{_WORD[:30]}.01.{_SMALL[:7]}",
    "GitLab, to deploy": f"gldt-{_WORD[:20]}",
    "GitLab, a trigger's": f"glptt-{_HEX[:40]}",
    "GitLab, a job's": f"glcbt-64_{_WORD[:20]}",
    "GitLab, a feed's": f"glft-{_WORD[:20]}",
    "GitLab, for mail": f"glimt-{_WORD[:25]}",
    "GitLab, an agent's": f"glagent-{_WORD[:50]}",
    "GitLab, SCIM": f"glsoat-{_WORD[:20]}",
    "GitLab, an application's": f"gloas-{_HEX[:64]}",
    "GitLab, a client's": f"glffct-{_WORD[:20]}",
    "SonarQube": f"sqp_{_HEX[:40]}",
    "SonarQube, a user's": f"squ_{_HEX[:40]}",
    "SonarQube, for analyses": f"sqa_{_HEX[:40]}",
    "Buildkite": f"bkua_{_HEX[:40]}",
    "Shippo": f"shippo_live_{_HEX[:40]}",
    "Clojars": f"CLOJARS_{_HEX[:60]}",
    "crates.io": f"cio{_WORD[:32]}",
    "JFrog": f"AKCp{_WORD[:69]}",
    "NuGet": f"oy2{_SMALL[:43]}",
    "Slack, a workspace's": f"xoxa-2-123456789012-{_WORD[:24]}",
    "Slack, a client's": f"xoxc-123456789012-{_WORD[:24]}",
    "Slack, renewed": f"xoxr-123456789012-{_WORD[:24]}",
    "Slack, of old": f"xoxs-123456789012-{_WORD[:24]}",
    "Linear, OAuth": f"lin_oauth_{_HEX[:64]}",
    "Apify": f"apify_api_{_WORD[:36]}",
    "ReadMe": f"rdme_{_SMALL[:70]}",
    "Prefect": f"pnu_{_WORD[:36]}",
    "Contentful": f"CFPAT-{_WORD[:43]}",
    "Airtable": f"pat{_WORD[:14]}.{_HEX[:64]}",
    "HubSpot": f"pat-na1-{_UUID}",
    "HubSpot, a second place": f"pat-na2-{_UUID}",
    "HubSpot, in Europe": f"pat-eu1-{_UUID}",
    "HubSpot, in Asia": f"pat-ap1-{_UUID}",
    "LaunchDarkly": f"sdk-{_UUID}",
    "Brevo": f"xkeysib-{_HEX[:64]}-{_WORD[:16]}",
    "Resend": f"re_{_WORD[:8]}_{_WORD[:24]}",
    "Twilio": f"SK{_HEX[:32]}",
    "Mailgun, newer": f"{_HEX[:32]}-{_HEX[:8]}-{_HEX[:8]}",
    "Mailchimp": f"{_HEX[:32]}-us21",
    "AWS, of old": f"ABIA{_BIG[:16]}",
    "AWS, by its context": f"ACCA{_BIG[:16]}",
    "AWS, Bedrock": f"ABSK{_WORD}{_WORD[:20]}=",
    "AWS, Bedrock for a while": f"bedrock-api-key-{_WORD}{_WORD[:20]}=",
    "AWS, a session's": f"IQoJb3JpZ2lu{_WORD}+/{_WORD}==",
    "AWS, an older session's": f"FwoGZXIvYXdz{_WORD}+/{_WORD}==",
    "Google, to renew": f"1//0{_WORD[:60]}-{_WORD[:30]}",
    "Cloudflare": f"cfut_{_WORD[:40]}{_HEX[:8]}",
    "Cloudflare, the global one": f"cfk_{_WORD[:40]}{_HEX[:8]}",
    "Cloudflare, an account's": f"cfat_{_WORD[:40]}{_HEX[:8]}",
    "Cloudflare, for certificates": f"v1.0-{_HEX[:24]}-{(_HEX * 2)[:146]}",
    "MongoDB": f"mdb_sa_sk_{_WORD[:40]}",
    "Fly.io": f"fo1_{_WORD[:43]}",
    "Fly.io, newer": f"fm2_{_WORD}+/{_WORD}=",
    "Fly.io, with limits": f"fm1r_{_WORD}+/{_WORD}=",
    "Fly.io, for one machine": f"fm1a_{_WORD}+/{_WORD}=",
    "Heroku": f"HRKU-AA{_WORD[:58]}",
    "Render": f"rnd_{_WORD[:28]}",
    "Doppler, a service's": f"dp.st.dev_main.{_WORD[:43]}",
    "Doppler, for people": f"dp.scim.{_WORD[:43]}",
    "Doppler, the command line's": f"dp.ct.{_WORD[:43]}",
    "Doppler, a service account's": f"dp.sa.{_WORD[:43]}",
    "Doppler, for audits": f"dp.audit.{_WORD[:43]}",
    "Supabase, a project's": f"sb_secret_{_WORD[:22]}_{_WORD[:8]}",
    "DigitalOcean, OAuth": f"doo_v1_{_HEX[:64]}",
    "DigitalOcean, to renew": f"dor_v1_{_HEX[:64]}",
    "Azure, a bus's": f"SharedAccessKey={_WORD[:43]}=",
    "Azure, an application's": f"{_WORD[:3]}8Q~{_WORD[:20]}~{_WORD[:13]}",
    "Azure, a service's": f"{_WORD[:52]}JQQJ99{_WORD[:26]}",
    "Azure, its storage": f"{_WORD[:76]}+ASt{_WORD[:6]}==",
    "Pulumi": f"pul-{_HEX[:40]}",
    "Terraform": f"{_WORD[:14]}.atlasv1.{_WORD[:67]}",
    "Vault, a batch's": f"hvb.{_WORD[:90]}",
    "Vault, to recover": f"hvr.{_WORD[:90]}",
    "Mapbox": f"sk.eyJ{_WORD[:60]}.{_WORD[:22]}",
    "Grafana, of old": f"eyJrIjoi{_WORD[:80]}=",
    "Grafana, the cloud's": f"glc_{_WORD[:80]}",
    "Sentry, an organization's": f"sntrys_eyJpYXQiOjE3{_WORD[:60]}==_{_WORD[:43]}",
    "Sentry, a user's": f"sntryu_{_HEX[:64]}",
    "Sentry, an app's": f"sntrya_{_HEX[:64]}",
    "Sentry, an integration's": f"sntryi_{_HEX[:64]}",
    "New Relic": f"NRAK-{_BIG[:27]}{_WORD[:4]}",
    "New Relic, a license": f"{_HEX[:36]}NRAL",
    "New Relic, a browser's": f"NRJS-{_HEX[:19]}",
    "New Relic, to insert": f"NRII-{_WORD[:32]}",
    "New Relic, to query": f"NRIQ-{_WORD[:32]}",
    "Dynatrace": f"dt0c01.{_BIG[:24]}.{_BIG[:64]}",
    "Dynatrace, the platform's": f"dt0s16.{_BIG[:24]}.{_BIG[:64]}",
    "Dynatrace, OAuth": f"dt0s01.{_BIG[:24]}.{_BIG[:64]}",
    "Dynatrace, a client's": f"dt0s08.{_BIG[:24]}.{_BIG[:64]}",
    "Stripe, a restricted test's": f"rk_test_{_WORD[:24]}",
    "Square, a secret": f"sq0csp-{_WORD[:43]}",
    "Square, newer": f"EAAA{_WORD[:60]}",
    "Meta": f"EAA{_WORD}{_WORD}",
    "EasyPost": f"EZAK{_WORD[:54]}",
    "Shopify, shared": f"shpss_{_HEX[:32]}",
    "Shopify, a custom app's": f"shpca_{_HEX[:32]}",
    "Shopify, a private app's": f"shppa_{_HEX[:32]}",
    "age": f"AGE-SECRET-KEY-1{_BIG[:58]}",
    "a JSON web token": f"eyJ{_WORD[:20]}.eyJ{_WORD[:40]}.{_WORD[:43]}",
    "a JSON web token, encrypted": f"eyJ{_WORD[:20]}..{_WORD[:16]}.{_WORD[:30]}.{_WORD[:22]}",
    "a key file": f"-----BEGIN RSA PRIVATE KEY-----\n{_WORD}\n{_WORD}\n-----END RSA PRIVATE KEY-----",
}
WITHIN = {
    "postgres://me:hunter2@db:5432/x": "postgres://***@db:5432/x",
    "redis://:hunter2@cache": "redis://***@cache",
    "mysql://me:12345@db": "mysql://***@db",
    "postgres://me:p@ss@db": "postgres://***@db",
    f"Authorization: Bearer {_WORD[:40]}==": "Authorization: Bearer ***",
    "Authorization: Basic bWU6aHVudGVyMjE=": "Authorization: Basic ***",
    f"https://hooks.slack.com/services/T0/B0/{_WORD[:24]}": "https://hooks.slack.com/***",
    f"https://discord.com/api/webhooks/{'12' * 9}/{_WORD[:68]}": "https://discord.com/api/webhooks/***",
    f"AWS_SECRET_ACCESS_KEY={_WORD[:40]}": "AWS_SECRET_ACCESS_KEY=***",
    f'"secretAccessKey": "{_WORD[:40]}"': '"secretAccessKey": "***"',
    f"DD_API_KEY={_HEX[:32]}": "DD_API_KEY=***",
    f"DD-APPLICATION-KEY: {_HEX[:40]}": "DD-APPLICATION-KEY: ***",
    f"TWILIO_AUTH_TOKEN = '{_HEX[:32]}'": "TWILIO_AUTH_TOKEN = '***'",
    f"HEROKU_API_KEY={_UUID}": "HEROKU_API_KEY=***",
    f"export CLOUDFLARE_API_TOKEN={_WORD[:40]}\n": "export CLOUDFLARE_API_TOKEN=***\n",
    f'{{"client_secret": "{_WORD[:40]}", "a": 1}}': '{"client_secret": "***", "a": 1}',
    f"MISTRAL_API_KEY={_WORD[:32]}. It is mine.": "MISTRAL_API_KEY=***. It is mine.",
    f"?sv=2022&sig={_WORD[:43]}%3D&se=2026": "?sv=2022&sig=***&se=2026",
    f"https://x.webhook.office.com/webhookb2/1@2/IncomingWebhook/{_HEX[:32]}/{_UUID}": (
        "https://x.webhook.office.com/webhookb2/1@2/IncomingWebhook/***"
    ),
    f"Private-Lines: 2\n{_WORD[:64]}\n{_WORD[:20]}==\nPrivate-MAC: 0": (
        "Private-Lines: 2\n***\nPrivate-MAC: 0"
    ),
}
HARMLESS = (
    "The key-value store holds task-force data; sk-learn is a library.",
    "d41d8cd98f00b204e9800998ecf8427e and 550e8400-e29b-41d4-a716-446655440000",
    "cache-key-d41d8cd98f00b204e9800998ecf8427e",
    "https://example.org/a/very/long/path?with=a&long=query#and-a-fragment-of-some-length",
    "mailto:somebody.with.a.long.name@example.org at 12345678:30",
    "git@github.com:owner/repository and ssh://git@github.com:22/owner/repository",
    '{"url":"http://localhost:8080","to":"me@example.org"}',
    '{"proxy":"http://localhost:3001","dependencies":{"@mui/material":"^5"}}',
    "http://h:8000\\n@app.route and http://host:80/a@b and https://host:8080?email=a@b.com",
    "[docs](http://localhost:8080),@alice; http://localhost:8080，然后@小明",
    "NotificationManagerService.notify.userNotificationCenterDelegate",
    "gb_population_by_local_authority_2021_v2 and sk-or-something-that-is-a-long-css-class-name",
    "sk-ant-colony-optimisation-for-beginners, hvs.something_long_variable_name_here",
    "SG.someModuleNameWhichIs.anotherLongIdentifierNameForTests",
    "this-is-a-rather-long-name-with-many-parts.and.dots_in_it.or.more",
    "-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----",
    "Bearer token_authentication/authorization; Basic authenticationRequired",
    "MODULE.SECRET.CONSTANT = secret_handshake_of_the_masons; Bearer of good tidings",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 is no key",
    "commit 3b18e512dba79e4c8300dd08aeb37f8e728b8dad, tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    "etag-d41d8cd98f00b204e9800998ecf8427e-gzip and 550e8400-e29b-41d4-a716-446655440000-2",
    "primary_key: 550e8400-e29b-41d4-a716-446655440000; cache_key=d41d8cd98f00b204e9800998ecf8427e",
    "sdk-reference-for-beginners-2026, pat-on-the-back-2026-edition-with-pictures, pa-system-in-hall-2b",
    'integrity="sha512-9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a089f86d081=="',
    "api_key = load_the_api_key_of_service_number_1_or_2_from_disk(environment)",
    "client_secret = settings.the_client_secret_of_the_first_of_2_or_3_tenants.value",
    "access_token: AccessTokenOfTheCurrentUserOrNone; secret_key: the_one_that_you_find_in_the_drawer",
    "config=the_configuration_of_the_second_machine; design=AStrangeWordWithManyLettersInItAndMoreOfThem",
    "01ARZ3NDEKTSV4RRFFQ69G5FAV 01ARZ3NDEKTSV4RRFFQ69G5FAW, 2026-11-28T01:33:01.512Z, 00:1B:44:11:3A:B7",
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6",
    "Private-Lines: 14 is how many lines of it follow, says the head of each file that PuTTY has written",
    "jina_embeddings_v2_base_en_with_a_context_of_8192_tokens_or_less, the table of jina_clip_v1_as_of_2026",
    "fw_version_of_the_second_board_2026 and re_sampled_audio_of_the_first_recording_2026",
    "/usr/lib/python3.11/site-packages/goodbot_connectors/telegram/normalize.py:120 in key_of_the_chat",
    "Wörter, die länger als zwanzig Zeichen sind: Donaudampfschifffahrtsgesellschaft",
)


@pytest.mark.parametrize("secret", SECRETS.values(), ids=SECRETS)
def test_it_is_masked_and_the_words_around_it_stay(secret: str) -> None:
    assert redact(f"Look: {secret}, is it right?") == "Look: ***, is it right?"
    assert redact(f'export KEY="{secret}"') == 'export KEY="***"'
    assert redact(f"{secret}\n{secret}") == "***\n***"
    assert redact(f"A=1\\n{secret}\\n") == "A=1\\n***\\n", "as a tool call has it, in JSON"
    assert redact(f"\x1b[32m{secret}\x1b[0m") == "\x1b[32m***\x1b[0m"


def test_every_form_has_an_example() -> None:
    """One that nobody has tried may be wrong."""
    examples = [*SECRETS.values(), *WITHIN]
    assert [start for start in _PREFIXED if not any(one.startswith(start) for one in examples)] == []
    silent = [p for _, p in _SHAPES if not any(re.search(p, one) for one in examples)]
    assert silent == []


def test_the_docs_name_whose_are_masked() -> None:
    text = (ROOT / "docs/data.md").read_text()
    assert sorted(name for name in SECRETS if name.partition(",")[0] not in text) == []


@pytest.mark.parametrize("text", WITHIN)
def test_what_says_whose_it_is_stays(text: str) -> None:
    assert redact(text) == WITHIN[text]


def test_a_key_file_without_an_end_goes_on_to_the_end() -> None:
    text = f"Mine:\n-----BEGIN OPENSSH PRIVATE KEY-----\n{_WORD}\n{_WORD[:7]}"
    assert redact(text) == "Mine:\n***"


@pytest.mark.parametrize("text", HARMLESS)
def test_what_is_no_secret_stays(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize(
    "part",
    [
        "sk-",
        "sk-proj-",
        "-eyJ",
        "eyJaaaaaaaaaaa.",
        "://a:b",
        "-----BEGIN ",
        "MNOM",
        "1",
        "a.",
        "-----BEGIN PRIVATE KEY-----",
        "SG.aaaaaaaaaaaaaaaaaaaa.",
        "Bearer ",
        "xoxb-",
        "key-",
        "AKIA",
        "A ",
        "-ghp_",
        "\\nghp_",
        "://:@",
        "@a",
        "MTIz",
        "secretaccesskey=",
        "SECRET_ACCESS_KEY  ",
        "eyJaaaaaaaaaaa..",
        "api_key=",
        "secretkey_token:",
        "sig=",
        "/IncomingWebhook/",
        "Private-Lines: 1 ",
        "EAAA",
        "/ABSK",
        "sk.eyJaaaaaaaaaaaaaaaaaaaa.",
        "c4a7ec4a7ec4a7ec4a7ec4a7ec4a7ec4-",
        "aaaaaaaaaaaaaa.atlasv1.",
        "NRAL",
        "aaa8Q~",
        "JQQJ99",
        "aaaa+ASt",
        "glpat-aaaaaaaaaaaaaaaaaaa1.ab.",
        "dp.st.a.",
    ],
)
def test_no_text_takes_long(part: str) -> None:
    text = (part * 1_000_000)[:1_000_000] + "!"
    with within(3.0):  # quadratic would be minutes
        redact(text)


async def test_nothing_of_it_reaches_the_disk(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """By every kind of event that carries words: the database, its log, a backup and what is logged."""
    caplog.set_level(logging.INFO)
    async with open_bot(tmp_path) as bot:
        for number, secret in enumerate(SECRETS.values()):
            answer = await bot.say(f"Is {secret} a good key?")
            await bot.command("good", reply_to=answer.message.id)
            await bot.command("reason", f"it said {secret}", reply_to=answer.message.id)
            await _capture(bot, number, secret)
            assert "***" in answer.text, "the model has not seen it either"
    make(tmp_path / "bot", tmp_path / "backup.tar", {}, now=0.0)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {"goodbot.db", "backup.tar"} <= {path.name for path in files}
    kept = [path.name for path in files for secret in SECRETS.values() if _in(path, secret)]
    assert kept == []
    assert not [name for name, secret in SECRETS.items() if secret in caplog.text]


def _in(path: Path, secret: str) -> bool:
    """Whether it, or the most telling part of it, lies in a file."""
    return max(secret.split("\n"), key=len).encode() in path.read_bytes()


async def _capture(bot: Bot, number: int, secret: str) -> None:
    """A capture with it in a tool's result, a tool call and the answer, and what is said of that."""
    call = {"name": "read", "arguments": f'{{"path": ".env", "key": "{secret}"}}'}
    common: dict[str, Any] = {"order": OrderKey(number), "user": OWNER, "channel": CHANNEL}
    taken = CaptureEvent(
        **common,
        event_id=f"capture-{number}",
        response=f"It is {secret}.",
        messages=(
            {"role": "user", "content": [{"type": "text", "text": f"Read {secret}"}]},
            {"role": "assistant", "content": None, "tool_calls": [{"function": call}]},
            {"role": "tool", "content": f"KEY={secret}"},
        ),
        prompt_tokens=(1, 2),
        tokens=(3,),
        logprobs=(-0.5,),
    )
    [receipt] = await bot.app.dispatcher.submit([taken], CHANNEL.connector)
    turn = await bot.store.read(lambda db: turns.get(db, receipt.turn))
    assert turn is not None
    assert turn.response == "It is ***."
    assert (turn.prompt_tokens, turn.tokens, turn.logprobs) == ((), (), ()), "they would spell it"
    for kind in (RatingKind.COMMENT, RatingKind.BETTER):
        said = RatingEvent(
            **common,
            event_id=f"{kind}-{number}",
            kind=kind,
            turn=receipt.turn,
            source="typed",
            text=f"Rather {secret}",
        )
        await bot.app.dispatcher.submit([said], CHANNEL.connector)


async def test_a_capture_without_any_keeps_its_tokens(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        taken = CaptureEvent(
            order=OrderKey(1),
            user=OWNER,
            channel=CHANNEL,
            event_id="capture",
            response="4",
            messages=({"role": "user", "content": "What is 2 + 2?"},),
            prompt_tokens=(1, 2),
            tokens=(3,),
            logprobs=(-0.5,),
        )
        [receipt] = await bot.app.dispatcher.submit([taken], CHANNEL.connector)
        turn = await bot.store.read(lambda db: turns.get(db, receipt.turn))
    assert turn is not None
    assert turn.tokens == (3,)


@pytest.mark.parametrize("command", ["reason", "better", "rollback", "nonsense"])
async def test_nothing_of_it_stays_of_the_command_line(tmp_path: Path, command: str) -> None:
    """It comes by the control socket; what was asked stands in the audit trail for ever."""
    secret = SECRETS["GitHub, a person's"]
    async with open_bot(tmp_path) as bot:
        await bot.say("A question")
        for name, args in ((command, ["it", "said", secret]), (secret, [])):
            with contextlib.suppress(GoodbotError):
                await control.execute(bot.app, name, args)
        await bot.command(secret)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [path.name for path in files if _in(path, secret)] == []


def test_nothing_of_it_stays_in_what_agents_wait_with() -> None:
    """Also where the cut goes through it: the rest of a key has no form that could be told."""
    secret = SECRETS["Google"]
    session = ClaudeSession(id="s", user="me")
    session.ask("one", f"It is {secret}", person=True)
    session.answered(
        "two",
        "x" * 1980 + " " + secret,
        SessionAnswer(turn="t", event_id="e", text="y" * 1980 + " " + secret),
    )
    assert "C4nary" not in repr(session)
    codex = CodexSession().begin("one", secret)
    codex = codex.end("one", f"It is {secret}", "turn").begin("two", "Go on")
    assert "C4nary" not in repr(codex)


def test_windows_byte_order_mark_is_no_part_of_the_first_name(tmp_path: Path) -> None:
    """Notepad writes one."""
    file = tmp_path / "secrets.env"
    file.write_bytes(b"\xef\xbb\xbfGOODBOT_TELEGRAM_TOKEN=1:x\n")
    file.chmod(0o600)
    assert SecretStore(tmp_path)._read() == {"GOODBOT_TELEGRAM_TOKEN": "1:x"}


def test_a_key_that_a_cut_goes_through_leaves_no_beginning() -> None:
    token = f"eyJhbGciOiJSUzI1NiJ9.eyJ{'aB3x' * 700}.{'c4D_' * 80}"
    for before in range(0, 220, 7):
        told = redact_beginning(f"{'a ' * before}{token} and more", 200)
        assert "eyJ" not in told
    keys = " ".join(["sk-proj-" + "aB3" * 10] * 60)  # masked, they are so short that the cut itself is told
    assert set(redact_beginning(keys, 600).split()) == {"***"}
    assert redact_beginning("é" * 5000, 200) == "é" * 200
    assert redact_beginning(f"a {token}", 9000) == "a ***"
    assert [redact_beginning(text, 3) for text in ("", " " * 2000, "a b c d")] == ["", " " * 3, "a b"]
