"""The program in docs/licences.md reads a signed licence, and refuses every other one."""

import base64
import json
import unittest

from cryptography.exceptions import InvalidSignature

from programs import ROOT

SIGNED = (ROOT / "crates/protocol/golden/envelope-licence.json").read_text()
ROOT_KEY = "iojj3XQJ8ZX9UtstPLpdcspnCb8dlBIb83SIAbQPb1w="
OTHER_KEY = "gTl3Dqh9F19Wo1Rmw0x+zMuNipG07jeiXfYPW4/Js5Q="


def read_licence(*arguments):
    page = (ROOT / "docs/licences.md").read_text()
    [program] = [part.split("```", 1)[0] for part in page.split("```python\n")[1:]]
    names = {}
    exec(program, names)
    return names["read_licence"](*arguments)


class Recipe(unittest.TestCase):
    def refused(self, error, text=SIGNED, keys=(ROOT_KEY,), tenant="acme", install="globex"):
        with self.assertRaises(error):
            read_licence(text, keys, tenant, install)

    def test_a_signed_licence_is_read(self):
        licence = read_licence(SIGNED, (OTHER_KEY, ROOT_KEY), "acme", "globex")
        self.assertEqual((licence["serial"], licence["facts"]["seats"]), (3, 50))

    def test_a_licence_of_another_install_tenant_or_key_is_refused(self):
        self.refused(ValueError, install="initech")
        self.refused(ValueError, tenant="other")
        self.refused(ValueError, keys=(OTHER_KEY,))

    def test_changed_facts_are_refused(self):
        changed = json.loads(SIGNED)
        licence = json.loads(base64.b64decode(changed["payload"]))
        licence["facts"]["seats"] = 5000
        changed["payload"] = base64.b64encode(json.dumps(licence).encode()).decode()
        self.refused(InvalidSignature, json.dumps(changed))

    def test_a_message_of_another_kind_is_refused(self):
        order = json.loads(SIGNED) | {"payloadType": "application/vnd.freehold.order.v1+json"}
        self.refused(ValueError, json.dumps(order))
