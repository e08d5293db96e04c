//! Checks that one of the keys in the config signed an image, before any part of the image is copied.
//!
//! Keyless signatures are not checked, because the builder does not have Sigstore's trust root, which the check needs.
//! The builder does not query the transparency log either: it trusts each key that the config names.

mod document;
mod key;

use freehold_oci::{Form, Repository, referring_signatures, tagged_signatures};
use freehold_protocol::Digest;
use freehold_protocol::order::Signer;
use freehold_runner::job::failure::Failure;

use document::Signed;
use key::Key;

/// Returns the fingerprint of the key among `signers` that signed the image `digest` in `source`.
pub(crate) async fn check(source: &Repository, digest: &Digest, signers: &[Signer]) -> Result<Digest, Failure> {
    let (image, asked) = (source.image(digest), Asked::new(signers)?);
    let mut seen = Seen::default();
    for tagged in [true, false] {
        let found = if tagged {
            tagged_signatures(source, digest).await?
        } else {
            referring_signatures(source, digest).await?
        };
        for signature in found {
            match asked.judge(&signature.form, &signature.document(source).await?, digest) {
                Verdict::By(key) => return Ok(key),
                other => seen.note(other),
            }
        }
    }
    Err(Failure::new(seen.reason(&image, &asked)))
}

/// The accepted signers; the signature of one of them is enough.
struct Asked {
    keys: Vec<Key>,
    keyless: usize,
}

/// The result of the check of one signature.
#[derive(Debug, PartialEq)]
enum Verdict {
    /// The key signed the image.
    By(Digest),
    /// The key signed another image.
    Moved { key: Digest, about: String },
    /// The key signed a message that is not a signature of an image.
    Other { key: Digest, what: String },
    /// None of the keys made the signature.
    Nobody,
}

impl Asked {
    fn new(signers: &[Signer]) -> Result<Self, Failure> {
        let (mut keys, mut keyless) = (Vec::new(), 0);
        for (at, signer) in signers.iter().enumerate() {
            match signer {
                Signer::Key { public_key } => keys.push(Key::parse(public_key).map_err(|wrong| {
                    Failure::new(format!(
                        "authority {} of `verification` cannot be used: {wrong}; give the text of `cosign.pub`, as \
                         `cosign public-key --key cosign.key` writes it",
                        at + 1
                    ))
                })?),
                Signer::Keyless { .. } => keyless += 1,
            }
        }
        match (keys.is_empty(), keyless) {
            (false, _) => Ok(Self { keys, keyless }),
            (true, 0) => Err(Failure::new(
                "the image must be signed, but the config does not name the key; name a `public_key` in \
                 `verification.authorities`",
            )),
            (true, _) => Err(Failure::new(
                "only keyless signatures are accepted for the image, and builds cannot check them; sign it with \
                 `cosign sign --key` and name that key as `public_key` in `verification.authorities`",
            )),
        }
    }

    /// Returns which key made the signature, and whether the signed message names the image `digest`.
    fn judge(&self, form: &Form, document: &[u8], digest: &Digest) -> Verdict {
        let read = match form {
            Form::SimpleSigning { signature } => Some(Signed::simple(signature, document)),
            Form::Bundle => Signed::bundle(document),
        };
        let Some(signed) = read else { return Verdict::Nobody };
        let by = |key: &&Key| signed.signatures.iter().any(|made| key.signed(&signed.message, made));
        let Some(key) = self.keys.iter().find(by) else { return Verdict::Nobody };
        // The message is parsed only after its signature is verified, because an unsigned message is not trusted.
        let key = key.fingerprint.clone();
        match signed.claim() {
            Ok(images) if images.iter().any(|image| image == digest.as_str()) => Verdict::By(key),
            Ok(images) => Verdict::Moved { key, about: document::shortened(&images.join("`, `")) },
            Err(what) => Verdict::Other { key, what },
        }
    }
}

/// The results of the signatures checked so far. They explain a refusal.
#[derive(Debug, Default)]
struct Seen {
    signatures: usize,
    moved: Option<(Digest, String)>,
    other: Option<(Digest, String)>,
}

impl Seen {
    fn note(&mut self, verdict: Verdict) {
        self.signatures += 1;
        match verdict {
            Verdict::Moved { key, about } => self.moved = Some((key, about)),
            Verdict::Other { key, what } => self.other = Some((key, what)),
            Verdict::By(_) | Verdict::Nobody => {}
        }
    }

    fn reason(&self, image: &str, asked: &Asked) -> String {
        let sign = format!("sign it with `cosign sign --key cosign.key {image}`");
        let why = match (&self.moved, &self.other, self.signatures) {
            (Some((key, about)), ..) => {
                format!(
                    "image `{image}` has a signature by key `{key}`, but it is for another image, `{about}`; {sign}"
                )
            }
            (None, Some((key, what)), _) => {
                format!("image `{image}` has a document that key `{key}` signed, but the document is {what}; {sign}")
            }
            (None, None, 0) => format!("image `{image}` has no signature; {sign}"),
            (None, None, count) => {
                let keys: Vec<String> = asked.keys.iter().map(|key| format!("`{}`", key.fingerprint)).collect();
                let signatures = if count == 1 { "1 signature".to_owned() } else { format!("{count} signatures") };
                format!(
                    "image `{image}` has {signatures}, but none by a key that the config names ({}); {sign}, or add \
                     the signer's `public_key` to `verification.authorities`",
                    keys.join(", ")
                )
            }
        };
        let untried = if asked.keyless > 0 { " (keyless signatures cannot be checked and were not tried)" } else { "" };
        format!("{why}{untried}")
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use freehold_protocol::envelope::pae;
    use ring::rand::SystemRandom;
    use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair as _};
    use serde_json::{Value, json};

    use super::*;

    /// The bytes before the point in the `SubjectPublicKeyInfo` of a P-256 key.
    const P256_HEAD: [u8; 26] = [
        0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48,
        0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
    ];

    struct Pair(EcdsaKeyPair, SystemRandom);

    impl Pair {
        fn new() -> Self {
            let (random, algorithm) = (SystemRandom::new(), &ECDSA_P256_SHA256_ASN1_SIGNING);
            let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
            Self(EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random).unwrap(), random)
        }

        fn signer(&self) -> Signer {
            let der = [&P256_HEAD, self.0.public_key().as_ref()].concat();
            let public_key =
                format!("-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n", STANDARD.encode(der));
            Signer::Key { public_key }
        }

        fn sign(&self, message: &[u8]) -> String {
            STANDARD.encode(self.0.sign(&self.1, message).unwrap())
        }

        fn simple(&self, document: &[u8]) -> Form {
            Form::SimpleSigning { signature: self.sign(document) }
        }

        fn bundle(&self, statement: &Value) -> Vec<u8> {
            let (kind, payload) = ("application/vnd.in-toto+json", statement.to_string().into_bytes());
            let made = json!([{ "sig": self.sign(&pae(kind, &payload)) }]);
            let envelope = json!({ "payload": STANDARD.encode(payload), "payloadType": kind, "signatures": made });
            json!({ "mediaType": freehold_oci::BUNDLE_TYPE, "dsseEnvelope": envelope }).to_string().into_bytes()
        }
    }

    fn keyless() -> Signer {
        Signer::Keyless {
            issuer: "https://accounts.example".into(),
            subject: "build@example".into(),
            subject_regexp: String::new(),
        }
    }

    fn image() -> Digest {
        Digest::of(b"image")
    }

    fn document(digest: &Digest, kind: &str) -> Vec<u8> {
        let critical = json!({
            "identity": { "docker-reference": "registry.example/web" },
            "image": { "docker-manifest-digest": digest },
            "type": kind,
        });
        json!({ "critical": critical, "optional": null }).to_string().into_bytes()
    }

    fn statement(digest: &Digest, kind: &str) -> Value {
        json!({
            "_type": "https://in-toto.io/Statement/v1",
            "subject": [{ "digest": { "sha256": digest.hex() } }],
            "predicateType": kind,
            "predicate": {},
        })
    }

    fn refused(signers: &[Signer]) -> String {
        match Asked::new(signers).err().unwrap() {
            Failure::Failed { reason, partial: false } => reason,
            other => panic!("{other:?}"),
        }
    }

    const KIND: &str = "cosign container image signature";
    const PREDICATE: &str = "https://sigstore.dev/cosign/sign/v1";

    #[test]
    fn one_of_the_keys_is_enough() {
        let (one, two, three) = (Pair::new(), Pair::new(), Pair::new());
        let asked = Asked::new(&[keyless(), one.signer(), two.signer()]).unwrap();
        let (good, moved) = (document(&image(), KIND), document(&Digest::of(b"other"), KIND));
        let fingerprint = asked.keys[1].fingerprint.clone();

        assert_eq!(asked.judge(&two.simple(&good), &good, &image()), Verdict::By(fingerprint.clone()));
        assert_eq!(asked.judge(&three.simple(&good), &good, &image()), Verdict::Nobody);
        assert_eq!(asked.judge(&two.simple(&good), &moved, &image()), Verdict::Nobody);
        assert_eq!(
            asked.judge(&two.simple(&moved), &moved, &image()),
            Verdict::Moved { key: fingerprint, about: Digest::of(b"other").to_string() }
        );
        for signature in ["", "*", "AAAA"] {
            let form = Form::SimpleSigning { signature: signature.into() };
            assert_eq!(asked.judge(&form, &good, &image()), Verdict::Nobody);
        }
    }

    #[test]
    fn a_bundle_is_judged_by_its_statement() {
        let (one, two) = (Pair::new(), Pair::new());
        let asked = Asked::new(&[one.signer()]).unwrap();
        let key = asked.keys[0].fingerprint.clone();
        let judge = |document: &[u8]| asked.judge(&Form::Bundle, document, &image());
        let good = statement(&image(), PREDICATE);
        let other = statement(&image(), "https://slsa.dev/provenance/v1");

        assert_eq!(judge(&one.bundle(&good)), Verdict::By(key.clone()));
        assert_eq!(judge(&two.bundle(&good)), Verdict::Nobody);
        assert_eq!(judge(b"{}"), Verdict::Nobody);
        assert!(matches!(judge(&one.bundle(&statement(&Digest::of(b"other"), PREDICATE))), Verdict::Moved { .. }));
        assert_eq!(
            judge(&one.bundle(&other)),
            Verdict::Other { key, what: format!("of kind `https://slsa.dev/provenance/v1`, not `{PREDICATE}`") }
        );
    }

    #[test]
    fn a_signature_made_for_another_purpose_does_not_count() {
        let one = Pair::new();
        let asked = Asked::new(&[one.signer()]).unwrap();
        let judge = |document: &[u8]| match asked.judge(&one.simple(document), document, &image()) {
            Verdict::Other { what, .. } => what,
            verdict => panic!("{verdict:?}"),
        };

        let found = [
            judge(&document(&image(), "atomic container signature")),
            judge(b"{}"),
            // An envelope's message is not a document either, and a document is not an envelope's message.
            judge(&pae("application/vnd.in-toto+json", statement(&image(), PREDICATE).to_string().as_bytes())),
        ];

        insta::assert_snapshot!(found.join("\n"), @r"
        of kind `atomic container signature`, not `cosign container image signature`
        not what cosign writes: missing field `critical` at line 1 column 2
        not what cosign writes: expected value at line 1 column 1
        ");
    }

    #[test]
    fn who_can_sign_is_known_before_anything_is_asked_for() {
        let bad = |public_key: &str| Signer::Key { public_key: public_key.into() };

        let found = [
            refused(&[]),
            refused(&[keyless()]),
            refused(&[Pair::new().signer(), bad("KEY")]),
            refused(&[bad("-----BEGIN PUBLIC KEY-----\nQUJD\n-----END PUBLIC KEY-----")]),
        ];

        insta::assert_snapshot!(found.join("\n"), @r"
        the image must be signed, but the config does not name the key; name a `public_key` in `verification.authorities`
        only keyless signatures are accepted for the image, and builds cannot check them; sign it with `cosign sign --key` and name that key as `public_key` in `verification.authorities`
        authority 2 of `verification` cannot be used: the public key is not in PEM form: it does not begin with `-----BEGIN PUBLIC KEY-----`; give the text of `cosign.pub`, as `cosign public-key --key cosign.key` writes it
        authority 1 of `verification` cannot be used: the contents of the public key are not a key: unexpected ASN.1 DER tag: expected SEQUENCE, got APPLICATION [1] (primitive); give the text of `cosign.pub`, as `cosign public-key --key cosign.key` writes it
        ");
    }

    #[test]
    fn a_refusal_says_what_was_found() {
        let asked =
            Asked::new(&[Signer::Key { public_key: include_str!("../../tests/keys/p256.pub").into() }, keyless()])
                .unwrap();
        let key = || Digest::of(b"key");
        let reason = |verdicts: Vec<Verdict>| {
            let mut seen = Seen::default();
            verdicts.into_iter().for_each(|verdict| seen.note(verdict));
            seen.reason("registry.example/web@sha256:11", &asked)
        };

        let found = [
            reason(Vec::new()),
            reason(vec![Verdict::Nobody]),
            reason(vec![Verdict::Nobody, Verdict::Other { key: key(), what: "of kind `a`, not `b`".into() }]),
            reason(vec![
                Verdict::Moved { key: key(), about: "sha256:22".into() },
                Verdict::Other { key: key(), what: "of kind `a`, not `b`".into() },
            ]),
        ];

        insta::assert_snapshot!(found.join("\n"), @r"
        image `registry.example/web@sha256:11` has no signature; sign it with `cosign sign --key cosign.key registry.example/web@sha256:11` (keyless signatures cannot be checked and were not tried)
        image `registry.example/web@sha256:11` has 1 signature, but none by a key that the config names (`sha256:4356e0276e7b10aab1491eb65a2829ae062594f872f3b5d8e4ac093e3989da49`); sign it with `cosign sign --key cosign.key registry.example/web@sha256:11`, or add the signer's `public_key` to `verification.authorities` (keyless signatures cannot be checked and were not tried)
        image `registry.example/web@sha256:11` has a document that key `sha256:2c70e12b7a0646f92279f427c7b38e7334d8e5389cff167a1dc30e73f826b683` signed, but the document is of kind `a`, not `b`; sign it with `cosign sign --key cosign.key registry.example/web@sha256:11` (keyless signatures cannot be checked and were not tried)
        image `registry.example/web@sha256:11` has a signature by key `sha256:2c70e12b7a0646f92279f427c7b38e7334d8e5389cff167a1dc30e73f826b683`, but it is for another image, `sha256:22`; sign it with `cosign sign --key cosign.key registry.example/web@sha256:11` (keyless signatures cannot be checked and were not tried)
        ");
    }
}
