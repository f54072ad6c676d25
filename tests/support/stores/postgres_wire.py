"""A wire to a database server that is cut while a transaction is committed."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

from sqlalchemy.engine import make_url

COMMIT = b"Q\x00\x00\x00\x0bCOMMIT\x00"
"""As the protocol sends it."""
SOCKET = ".s.PGSQL.5432"


class Wire:
    """A proxy that forwards the bytes of a socket. `cut` sets the next interruption: "before" the
    server gets a COMMIT, or "after" it, so that it is committed but not confirmed."""

    def __init__(self, folder: Path, uri: str) -> None:
        url = make_url(uri)
        self._target = f"{url.query['host']}/{SOCKET}"
        self.uri = url.set(query={**url.query, "host": str(folder)}).render_as_string(
            hide_password=False
        )
        self.cut: str | None = None
        self._path = folder / SOCKET
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self._path))
        self._listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def was_cut(self) -> bool:
        return self.cut is None

    def close(self) -> None:
        """Accept no connections from now on. Closing alone does not interrupt `accept`."""
        self._path.unlink(missing_ok=True)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return  # closed
            server = socket.socket(socket.AF_UNIX)
            server.connect(self._target)
            for source, to in ((client, server), (server, client)):
                threading.Thread(
                    target=self._hand_on,
                    args=(source, to, client, server, source is client),
                    daemon=True,
                ).start()

    def _hand_on(
        self,
        source: socket.socket,
        to: socket.socket,
        client: socket.socket,
        server: socket.socket,
        asks: bool,
    ) -> None:
        while True:
            try:
                data = source.recv(65_536)
                if asks and self.cut is not None and data.endswith(COMMIT):
                    when, self.cut = self.cut, None
                    client.shutdown(socket.SHUT_RDWR)
                    if when == "after":
                        to.sendall(data)
                    server.shutdown(socket.SHUT_WR)
                    return
                to.sendall(data)
            except OSError:
                data = b""
            if not data:
                for end in (client, server):
                    end.close()
                return
