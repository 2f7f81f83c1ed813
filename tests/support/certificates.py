"""Certificates of a test: made by the openssl command, for "localhost" and 127.0.0.1, valid for two days."""

import subprocess


def openssl(*words):
    subprocess.run(["openssl", *map(str, words)], check=True, stdin=subprocess.DEVNULL,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def make_certificates(folder):
    """ca, a server and a client signed by it, and another authority that signed nothing."""
    for name in ("ca", "other-ca"):
        openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}",
                "-keyout", folder / f"{name}.key", "-out", folder / f"{name}.pem")
    (folder / "names").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
    for name in ("server", "client"):
        openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={name}",
                "-keyout", folder / f"{name}.key", "-out", folder / f"{name}.csr")
        openssl("x509", "-req", "-days", "2", "-in", folder / f"{name}.csr", "-CA", folder / "ca.pem",
                "-CAkey", folder / "ca.key", "-CAcreateserial", "-extfile", folder / "names",
                "-out", folder / f"{name}.pem")
