"""Tests what the product relies on in the local cloud's KMS. Run by `cloud test`."""

import unittest

from cryptography.hazmat.primitives.serialization import load_der_public_key

from contract_cloud import Contract, allow, needs


class Keys(Contract):
    @needs("ed25519")
    def test_ed25519_key_signs_raw_messages(self):
        kms = self.account.client("kms")
        key = kms.create_key(KeySpec="ECC_NIST_EDWARDS25519", KeyUsage="SIGN_VERIFY")["KeyMetadata"]["KeyId"]

        signature = kms.sign(KeyId=key, Message=b"order", MessageType="RAW", SigningAlgorithm="ED25519_SHA_512")[
            "Signature"
        ]

        public = load_der_public_key(kms.get_public_key(KeyId=key)["PublicKey"])
        self.assertEqual(64, len(signature))
        public.verify(signature, b"order")

    @needs("enforcement")
    def test_permission_on_a_key_covers_requests_by_its_alias(self):
        kms = self.account.client("kms")
        key, other = (kms.create_key()["KeyMetadata"]["Arn"] for _ in range(2))
        kms.create_alias(AliasName="alias/own", TargetKeyId=key)
        kms.create_alias(AliasName="alias/other", TargetKeyId=other)
        role = self.account.role("key-user", allow("kms:GenerateDataKey", on=key))

        made = role.client("kms").generate_data_key(KeyId="alias/own", KeySpec="AES_256")

        self.assertEqual(32, len(made["Plaintext"]))
        self.refused("AccessDenied", role.client("kms").generate_data_key, KeyId="alias/other", KeySpec="AES_256")


if __name__ == "__main__":
    unittest.main()
