"""Health check of a container: `python -I -S ready.py PORT` asks its service's /readyz; exit code 0 for 200.

Standard library only, and little of it: it runs every few seconds beside the service.
"""

import socket
import sys

_TIMEOUT_S = 2.0

try:
    with socket.create_connection(("127.0.0.1", int(sys.argv[1])), _TIMEOUT_S) as connection:
        connection.sendall(b"GET /readyz HTTP/1.0\r\n\r\n")
        answer = b"".join(iter(lambda: connection.recv(4096), b"")).decode(errors="replace")
except OSError as error:
    sys.exit(f"no answer: {error}")
status, _, body = answer.partition("\r\n\r\n")
if " 200 " not in status.partition("\r\n")[0]:
    sys.exit(body.strip() or "no answer")
sys.stdout.write(body)
