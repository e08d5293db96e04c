"""An issuer of OpenID Connect on loopback: its keys, its documents, and tokens that are right or wrong in one place."""

import base64
import http.server
import json
import threading
import time

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

AUDIENCE = "freehold-acme"


class Issuer:
    """Serves its configuration and its public key until `close`."""

    def __init__(self):
        self.key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        issuer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                found = issuer.documents().get(self.path)
                self.send_response(200 if found else 404)
                self.end_headers()
                self.wfile.write(json.dumps(found or {}).encode())

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def documents(self):
        numbers = self.key.public_key().public_numbers()
        key = {"kty": "RSA", "use": "sig", "alg": "RS256", "kid": "one", "n": number(numbers.n), "e": number(numbers.e)}
        return {
            "/.well-known/openid-configuration": {"issuer": self.url, "jwks_uri": f"{self.url}/keys"},
            "/keys": {"keys": [key]},
        }

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def token(self, header=None, key=None, signature=None, **claims):
        """Returns a token that is right but for what is given; a claim that is None is left out."""
        now = int(time.time())
        right = {"iss": self.url, "sub": "ana", "aud": AUDIENCE, "iat": now - 60, "exp": now + 600}
        wanted = {name: value for name, value in {**right, **claims}.items() if value is not None}
        head = {"alg": "RS256", "typ": "JWT", "kid": "one", **(header or {})}
        signed = f"{text(json.dumps(head).encode())}.{text(json.dumps(wanted).encode())}"
        if signature is None:
            signature = (key or self.key).sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
        return f"{signed}.{text(signature)}"


def text(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def number(value):
    return text(value.to_bytes((value.bit_length() + 7) // 8, "big"))
