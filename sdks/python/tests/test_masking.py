"""Masking before an event is created, with the same examples as the TypeScript SDK's tests."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tacho_sdk.recording.mask import Mask, Masking
from tacho_sdk.recording.plain import dump

MARK = "[masked:credential]"
ALL = Masking(email=True, card_number=True, phone=True, iban=True)


def masked(value: Any, options: Masking | None = None) -> Any:
    mask = Mask(options or Masking())
    return mask.value(value) if mask.touches(dump(value)) else value


SECRETS = [
    "sk-proj-abcdefghijklmnopqrstuvwx",
    "sk-ant-api03-abcdefghijklmnop_qrs",
    "sk_live_4eC39HqLyjWDarjtT1zdp7dc",
    "whsec_abcdefghijklmnopqrstuvwxyz",
    "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
    "github_pat_11ABCDEFG0abcdefghijkl_mnopqrstuvwxyz",
    "glpat-abcdefghijklmnopqrst",
    "xoxb-1234567890-abcdefghij",
    "AKIAIOSFODNN7EXAMPLE",
    "AIzaSyA1234567890abcdefghijklmnopqrstuv",
    "npm_abcdefghijklmnopqrstuvwxyz0123456789",
    "tacho_k3y1d_abcdefghijklmnopqrstuvwxyz0123456789",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
]


@pytest.mark.parametrize("secret", SECRETS)
def test_well_known_forms_are_masked_anywhere_in_a_text(secret: str) -> None:
    for text in (secret, f"use {secret} now", f'"{secret}"', f"key={secret}&x=1", f"\n{secret}\n"):
        result = masked({"note": [text]})["note"][0]
        assert secret not in result and MARK in result
        assert masked(result) == result


def test_a_private_key_is_masked_to_its_end_or_to_the_end_of_the_text() -> None:
    key = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nabc-def\n"
    whole, cut = masked([f"a {key}-----END RSA PRIVATE KEY----- b", f"a {key}"])
    assert "MIIEow" not in whole + cut
    assert whole.endswith(" b")


ASSIGNED = {
    "Authorization: Bearer abcdefghijkl.mnop": "Authorization: #",
    "postgres://app:hunter2@db/prod": "postgres://app:#@db/prod",
    "password=hunter2 user=ada": "password=# user=ada",
    '{"apiKey":"abc","user":"ada"}': '{"apiKey":"#","user":"ada"}',
    "access_token: abc; user: ada": "access_token: #; user: ada",
    "GET / HTTP/1.1\nCookie: sid=abc; theme=dark\nAccept: */*": "GET / HTTP/1.1\nCookie: #\nAccept: */*",
    "Set-Cookie: sid=abc; Path=/": "Set-Cookie: #",
    'curl -H "Authorization: token abc" https://example.com/': 'curl -H "Authorization: #" https://example.com/',
    'DB_PASS=hunter2 SMTP_PASSWORD="two words" HOME=/root': 'DB_PASS=# SMTP_PASSWORD="#" HOME=/root',
    "Server=db;Uid=sa;Pwd=hunter2;Timeout=5": "Server=db;Uid=sa;Pwd=#;Timeout=5",
    "pwd: hunter2, api key: abc": "pwd: #, api key: #",
    "https://abc@example.com/x and https://ada:p@ss@example.com": "https://#@example.com/x and https://ada:#@example.com",
    "password:     S3 user: ada": "password:     # user: ada",
    "PASSWORD      =      S3\nHOME=/root": "PASSWORD      =      #\nHOME=/root",
    "tokens          =          S3": "tokens          =          #",
    'Authorization: Digest username="u", response="S3"\nHost: x': "Authorization: #\nHost: x",
    'curl -H "Authorization: OAuth a=\\"b\\", c=\\"S3\\"" https://x': 'curl -H "Authorization: #" https://x',
    'curl -H "Authorization: Basic czM=" https://x': 'curl -H "Authorization: #" https://x',
    "password: |\n  S3\n\n  S3\nuser: ada": "password: #\nuser: ada",
    "password: >-\r\n  S3\r\nuser: ada": "password: #\r\nuser: ada",
    "<password>S3</password><user>ada</user>": "<password>#</password><user>ada</user>",
    "<ns:apiKey><![CDATA[S3]]></ns:apiKey>": "<ns:apiKey>#</ns:apiKey>",
    "mysql --password S3 prod": "mysql --password # prod",
    "run ['--password', 'S3', '--user']": "run ['--password', '#', '--user']",
    "curl -s -u admin:S3 https://x": "curl -s -u admin:# https://x",
    'curl --user "admin:S3" https://x': 'curl --user "admin:#" https://x',
    "https://x/y?X-Amz-Signature=S3&z=1": "https://x/y?X-Amz-Signature=#&z=1",
    "signing key: S3, encryption_key=S3": "signing key: #, encryption_key=#",
    "tokens=abc": "tokens=#",
    "tokens=12ab": "tokens=#",
}


@pytest.mark.parametrize("text", ASSIGNED)
def test_in_assignments_only_the_secret_is_masked(text: str) -> None:
    assert masked(text) == ASSIGNED[text].replace("#", MARK)


@pytest.mark.parametrize(
    "plain",
    [
        "http://auth:3000/login and ssh://git@example.com, the compass: north",
        "total_tokens=12, max_tokens: 7",
        "{'total_tokens': 12}",
        "tokens: 1,024.",
        "basic understanding, Basic authentication",
        "Write it in <password> tags.",
        "docker run -u 1000:1000 x",
        "docker login --password-stdin --user ada",
        "pin: 4, sid: 7, if (passwords > 3)",
        ' {"order": 1.0, "big": 9007199254740993, "note": "no password here"} ',
        {"usage": {"promptTokens": 12, "totalTokens": 15}, "author": "x", "maxTokens": 3, "password": None, "hasSecret": True},
        {"inputTokens": 12, "tokens": 3, "maxTokens": "4,096", "details": {"cachedTokens": {"read": 2}}},
        {"pin": "a", "sid": "b", "spin": "c", "forbearer": "d", "signature": "e"},
        [{"role": "tool", "name": "reset_password", "content": "done"}],
        {"required": ["password", "email"]},
    ],
)
def test_what_is_no_secret_is_unchanged(plain: Any) -> None:
    assert masked(plain) == plain


def test_values_under_names_of_secrets_are_masked_whatever_their_type() -> None:
    names = ["password", "X-API-Key", "client_secret", "refreshToken", "Cookie", "auth", "privateKey", "signingKey"]
    for name in [*names, "encryption_key", "passcode", "pass-word", "x-auth", "bearer", "X-Amz-Signature"]:
        for value in ("a", 12, {"deep": 1}, ["c"]):
            assert masked({name: value}) == {name: MARK}
    given = {"tokens": ["abc", 7], "authTokens": {"first": "abc"}, "apiKeys": ["abc"]}
    assert masked(given) == {"tokens": [MARK, 7], "authTokens": {"first": MARK}, "apiKeys": MARK}


def test_a_value_beside_its_name_is_masked() -> None:
    given = {
        "fields": [{"name": "password", "value": "a"}, {"Key": "DB_PASS", "Value": "b"}, {"name": "order", "value": "c"}],
        "headers": [["Cookie", "sid=1; x=2"], ["X-Api-Key", "a"], ["Accept", "b"]],
        "rawHeaders": ["Host", "example.com", "Authorization", "a", "X-Auth-Token", "b", "Set-Cookie", "c"],
        "more": [{"name": "password", "content": "a"}, {"key": "password", "data": {"b": "c"}}],
        "args": ["mysql", "--password", "S3", "prod"],
    }
    assert masked(given) == {
        "fields": [{"name": "password", "value": MARK}, {"Key": "DB_PASS", "Value": MARK}, {"name": "order", "value": "c"}],
        "headers": [["Cookie", MARK], ["X-Api-Key", MARK], ["Accept", "b"]],
        "rawHeaders": ["Host", "example.com", "Authorization", MARK, "X-Auth-Token", MARK, "Set-Cookie", MARK],
        "more": [{"name": "password", "content": MARK}, {"key": "password", "data": MARK}],
        "args": ["mysql", "--password", MARK, "prod"],
    }


def test_json_in_a_text_is_masked_as_json_also_if_encoded_several_times_or_cut() -> None:
    secret: Any = {"user": "ada", "password": 'my "own" pass, word', "nested": {"accessToken": ["a b"]}}
    clean: Any = {"user": "ada", "password": MARK, "nested": {"accessToken": MARK}}
    for _ in range(4):
        part = dump(secret)
        inside = masked(f"The answer was {part} for order 7")
        assert not re.search("own|pass,|a b", inside) and inside.endswith("for order 7")
        cut = masked(part[: part.index("word")])
        assert not re.search("own|pass,", cut)
        secret, clean = dump({"arguments": secret}), dump({"arguments": clean})
        assert masked({"text": secret}) == {"text": clean}
        escaped = "  [" + secret.replace("p", "\\u0070") + "]\n"
        assert "own" not in json.dumps(masked({"text": escaped}))


def test_personal_data_is_masked_only_if_enabled_and_only_with_a_valid_checksum() -> None:
    data = {
        "email": "write to ada.lovelace+x@example.co.uk now",
        "card_number": "card 4111 1111 1111 1111, not 4111 1111 1111 1112",
        "iban": "DE89 3704 0044 0532 0130 00 but not DE89 3704 0044 0532 0130 01",
        "phone": "call +49 (0)30 123456-78 or 415-555-2671, order 12345",
    }
    assert masked(data) == data
    assert [masked(text, Masking(**{name: True})) for name, text in data.items()] == [  # type: ignore[arg-type]
        "write to [masked:email] now",
        "card [masked:card], not 4111 1111 1111 1112",
        "[masked:iban] but not DE89 3704 0044 0532 0130 01",
        "call [masked:phone] or [masked:phone], order 12345",
    ]
    assert masked(4111111111111111, ALL) == "[masked:card]"


def test_own_keys_patterns_and_functions_extend_masking_and_it_can_be_disabled() -> None:
    assert masked({"Customer-Number": 7, "customer": 8}, Masking(keys=["customerNumber"])) == {
        "Customer-Number": MARK,
        "customer": 8,
    }
    assert masked("order A-123", Masking(patterns=[re.compile(r"A-\d+")])) == "order [masked]"
    assert masked({"a": "ada"}, Masking(custom=str.upper)) == {"A": "ADA"}
    assert masked({"password": "a"}, Masking(credentials=False)) == {"password": "a"}


@pytest.mark.parametrize(
    "piece", ["a ", "a.", "1 ", '"', "\\", "[", "token", 'password":"', "<auth>", "--otp ", "curl -u ", "DE11 ", "a:", "://x:"]
)
def test_masking_a_long_text_takes_linear_time(piece: str) -> None:
    # Quadratic time would take minutes: pytest's own limit in CI ends it.
    text = piece * (40_000 // len(piece))
    masked({"text": text}, ALL)
