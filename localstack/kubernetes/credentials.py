"""The files of a cluster that are secret or signed: authority, certificates, service account key, administrator."""

import base64
import datetime
import ipaddress
import json
import os

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

# Where MiniStack reads the authority in a cluster's container.
CA_IN_CONTAINER = "/var/lib/rancher/k3s/server/tls/server-ca.crt"


def write(folder, inside, host, port, token):
    """Writes `pki` and `kubeconfig` into `folder`, and the authority where MiniStack looks for it."""
    ca_key, api_key, account_key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(3))
    ca = _certificate("cluster-ca", ca_key, "cluster-ca", ca_key)
    api = _certificate("kube-apiserver", api_key, "cluster-ca", ca_key, host)
    ca_pem = ca.public_bytes(serialization.Encoding.PEM)
    files = {
        folder / "pki/ca.crt": ca_pem,
        folder / "pki/api.crt": api.public_bytes(serialization.Encoding.PEM),
        folder / "pki/api.key": _pem(api_key),
        folder / "pki/sa.key": _pem(account_key),
        folder / "pki/sa.pub": account_key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        ),
        folder / "pki/tokens.csv": f'{token},administrator,administrator,"system:masters"\n'.encode(),
        inside(CA_IN_CONTAINER): ca_pem,
        # The last one: a folder with it has all of them.
        folder / "kubeconfig": kubeconfig(f"https://{host}:{port}", base64.b64encode(ca_pem).decode(), token).encode(),
    }
    for path, content in files.items():
        _write_private(path, content)


def kubeconfig(server, ca, token):
    """Returns a kubeconfig as JSON, which is YAML too."""
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "one",
            "clusters": [{"name": "one", "cluster": {"server": server, "certificate-authority-data": ca}}],
            "users": [{"name": "one", "user": {"token": token}}],
            "contexts": [{"name": "one", "context": {"cluster": "one", "user": "one"}}],
        },
        indent=1,
    )


def _write_private(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(content)


def _pem(key):
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _certificate(subject, key, issuer, issuer_key, host=None):
    """Returns the certificate of a server on `host`, or of an authority when there is no host."""
    now = datetime.datetime.now(datetime.timezone.utc)
    builder = (
        x509.CertificateBuilder()
        .subject_name(_name(subject))
        .issuer_name(_name(issuer))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=30))
        .add_extension(x509.BasicConstraints(ca=host is None, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False)
        .add_extension(_usage(authority=host is None), critical=True)
    )
    if host:
        names = [x509.IPAddress(ipaddress.ip_address(host)), x509.DNSName("localhost")]
        names.append(x509.DNSName("kubernetes.default.svc"))
        builder = builder.add_extension(
            x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False
        ).add_extension(x509.SubjectAlternativeName(names), critical=False)
    return builder.sign(issuer_key, hashes.SHA256())


def _name(text):
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _usage(authority):
    return x509.KeyUsage(
        digital_signature=not authority,
        key_cert_sign=authority,
        crl_sign=authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
