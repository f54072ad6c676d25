"""Secrets of settings are masked wherever settings are shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from memservice.settings import Settings, mask_uri
from memservice.settings.declare import setting, tree
from memservice.settings.values import MASK
from support.project.settings_sources import load, refusal, row

SECRETS = {
    "AUTH_JWT_SECRET": "hunter2-jwt",
    "AUTH_JWT_SECRET_PREVIOUS": "hunter2-jwt-before",
    "LLM_OPENAI_API_KEY": "hunter2-openai",
    "WEBHOOK_SECRET": "hunter2-hook",
    "DB_CONNECTION_URI": "postgresql+psycopg://app:hunter2@db:5432/memory?sslpassword=hunter2&x=1",
    "REDIS_URL": "redis://:hunter2/@/x@cache/0",
    "TELEMETRY_HEADERS": '{"Authorization": "hunter2"}',
    "DERIVER_MODEL_CONFIG__OVERRIDES__API_KEY": "hunter2-model",
    "VECTOR_STORE_OPTIONS": '{"password": "hunter2"}',
    "DERIVER_MODEL_CONFIG__OVERRIDES__PROVIDER_PARAMS__EXTRA_BODY": '{"token": "hunter2"}',
}


def test_secrets_are_shown_nowhere(tmp_path: Path) -> None:
    settings = load(tmp_path, **SECRETS)
    rows = settings.rows()
    assert {name for name in SECRETS if name in {row.name for row in rows}} == set(SECRETS)
    assert "hunter2" not in "\n".join(row.value_text for row in rows)
    assert "hunter2" not in repr(settings)
    assert row(settings, "AUTH_JWT_SECRET").value_text == MASK
    assert row(settings, "AUTH_JWT_SECRET").secret
    assert row(settings, "AUTH_JWT_SECRET_PREVIOUS").value_text == MASK
    assert (
        row(settings, "DB_CONNECTION_URI").value_text
        == f"postgresql+psycopg://app:{MASK}@db:5432/memory?sslpassword={MASK}&x=1"
    )


def test_secrets_are_masked_in_errors(tmp_path: Path) -> None:
    message = refusal(
        tmp_path,
        TELEMETRY_HEADERS="hunter2",
        toml='[auth]\njwt_secret = ["hunter2"]\njwt_secret_previous = ["hunter2"]',
    )
    assert "hunter2" not in message
    assert "AUTH_JWT_SECRET" in message
    assert "AUTH_JWT_SECRET_PREVIOUS" in message
    short = refusal(
        tmp_path,
        AUTH_USE_AUTH="true",
        AUTH_JWT_SECRET="hunter2",
        AUTH_JWT_SECRET_PREVIOUS="hunter2",
    )
    assert "hunter2" not in short
    assert short.count('python -c "import secrets; print(secrets.token_urlsafe(32))"') == 2


PUBLIC_TEXTS = {
    "allowed_hosts", "api_key_env", "cors_origins", "embedder", "host",
    "key_version",
    "mode", "model", "peer", "small_model", "large_model", "namespace", "only",
    "optional", "required",
    "proxies",
    "prices",
    "reasoner", "reasoning_traces_file", "schema", "stop_sequences", "trace_purposes", "transport",
    "timezone", "type",
    "v1_deprecated_since", "v2_deprecated_since", "workspace", "workspaces", "allow_networks",
}  # fmt: skip
"""Settings of any text that are shown. Add one only if no secret belongs there."""


def test_free_text_settings_are_masked_unless_listed() -> None:
    shown: set[str] = set()
    masked: set[str] = set()
    for leaf in tree(Settings).leaves:
        kind = str(leaf.type)
        if (
            leaf.meta.choices
            or kind in ("int | None", "float | None")
            or isinstance(leaf.default, (bool, int, float))
        ):
            assert leaf.meta.secrecy == "public", leaf.name
        else:
            (shown if leaf.meta.secrecy == "public" else masked).add(leaf.path[-1])
    assert shown == PUBLIC_TEXTS
    assert masked >= {
        "extra_body",
        "extra_headers",
        "extra_query",
        "options",
        "jwt_secret",
        "api_key",
        "headers",
    }


def test_a_new_setting_is_masked_by_default() -> None:
    def meta(default: Any, **declared: Any) -> Any:
        return setting(default, "help", **declared).metadata["memservice"].secrecy

    assert [meta("text"), meta(None), meta({}), meta(())] == ["secret"] * 4
    assert [meta(5), meta(False), meta(None, low=0), meta("a", choices=("a", "b"))] == [
        "public"
    ] * 4
    assert [meta("x", secrecy="public"), meta(5, secrecy="secret")] == ["public", "secret"]


def test_a_key_in_place_of_a_variable_s_name_is_not_shown(tmp_path: Path) -> None:
    name = "DERIVER_MODEL_CONFIG__OVERRIDES__API_KEY_ENV"
    message = refusal(tmp_path, **{name: "sk-proj-hunter2"})
    assert f"{name} = {MASK}: that variable is not set" in message
    assert "hunter2" not in message


@given(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(
        lambda text: text.strip("*") == text
    )
)
def test_masking_removes_every_password(password: str) -> None:
    if len(password) < 4:
        password = f"<<{password}>>"
    masked = mask_uri(f"scheme://user:{password}@host/db")
    assert masked == f"scheme://user:{MASK}@host/db"
