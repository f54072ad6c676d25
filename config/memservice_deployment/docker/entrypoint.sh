#!/bin/sh
# The entry point of the image. The first `memservice serve` makes the secret that signs keys, and prints one admin key.
#
# The secret is in .env in the volume, where every command in the container finds it. It is made only if authentication is
# on and no secret is configured.
set -eu
umask 077

lacks_secret() {
    memservice config show 2>&1 | grep -q 'AUTH_USE_AUTH = true needs AUTH_JWT_SECRET'
}

first_start() {
    if lacks_secret; then
        secret=$(python -c 'import secrets; print(secrets.token_urlsafe(32))')
        printf 'AUTH_JWT_SECRET=%s\n' "$secret" >>.env
        : >.no-admin-key
    fi
    # The file is there until a key was printed, so that a start that was interrupted leaves nobody without one.
    if [ -e .no-admin-key ]; then
        key=$(memservice keys create --admin --label "made at the first start")
        printf 'admin key   %s\n            (shown this once; make others with: memservice keys create)\n' "$key"
        rm .no-admin-key
    fi
}

if [ "${1-} ${2-}" = "memservice serve" ]; then
    if [ ! -w . ]; then
        echo "memservice: user $(id -u) cannot write to $(pwd). Make it the owner of the volume: chown $(id -u):$(id -g) DIRECTORY" >&2
        exit 1
    fi
    first_start
fi
exec "$@"
