"""Minting of keys that name resources by uid."""

from __future__ import annotations

import logging
from datetime import datetime

from msgspec.structs import replace

from memservice.domain.auth.jwt_claims import Claims
from memservice.domain.errors import InvalidInput
from memservice.domain.records import ApiKey
from memservice.domain.times import wire_seconds
from memservice.runtime import Runtime
from memservice.services.auth import api_keys, policy
from memservice.services.auth.permissions import Permission
from memservice.services.auth.principal import Principal
from memservice.services.v1 import keys
from memservice.spi.storage import Transaction

log = logging.getLogger("memservice.keys")


def mint(
    rt: Runtime, principal: Principal, names: Claims, expires_at: datetime | None = None
) -> api_keys.Minted:
    """A new key for the app, user, session or collection that `names` names by uid, which need not
    exist.

    The label contains that uid: the stored names cannot express a collection, nor a resource that
    does not exist.
    """
    policy.require_admin(principal, needs=Permission.MANAGE_KEYS)
    now = rt.clock()
    expires_at = None if expires_at is None else expires_at.replace(microsecond=0)
    if not keys.names_by_uid(names):
        raise InvalidInput.at(
            "app_id",
            message=(
                "At least one of app_id, user_id, session_id, or collection_id must be provided"
            ),
        )
    api_keys.validate(api_keys.KeyRequest(), expires_at, None, now)
    signer = api_keys.signer_of(rt.settings)
    uid = api_keys.new_id()

    def store(tx: Transaction) -> ApiKey:
        translated = keys.translate(tx, names, collections=True)
        key = ApiKey(
            uid=uid,
            label=_label(names),
            workspace=translated.workspace,
            peer=translated.peer,
            session=translated.session,
            expires_at=expires_at,
            created_at=now,
        )
        return tx.keys.add(api_keys.bound(tx, key))

    api_key = rt.storage.write(store)
    log.info("created the key %s", uid)
    claims = replace(names, id=uid, issued=wire_seconds(now), expires_at=expires_at)
    return api_keys.Minted(api_key, signer.sign(claims))


def _label(names: Claims) -> str:
    """Kind and uid of the narrowest resource."""
    uids = (
        ("collection", names.collection_uid),
        ("session", names.owned_session_uid),
        ("user", names.user_uid),
        ("app", names.app_uid),
    )
    label = next(f"{kind} {uid}" for kind, uid in uids if uid)
    return label[: api_keys.MAX_LABEL]
