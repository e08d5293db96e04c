//! The licence of the install: verifies the licence that an order brings before templates read it, and replaces it by
//! the newest one that this runner has accepted.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use freehold_protocol::Timestamp;
use freehold_protocol::licence::{Licence, LicenceError};
use freehold_protocol::order::{Order, Work};
use serde_json::Value;
use tracing::{error, info, warn};

use crate::config::Config;
use crate::files;
use crate::wire::verify::Trust;

/// The name of the file with the newest licence that the runner accepted, as its signed text.
const FILE: &str = "licence.json";
/// The place of the values about the install in the values of an order.
const INSTALL: &str = "/nuon/install";
/// The name of the licence in these values.
const LICENCE: &str = "licence";

/// The reason why the licence in an order cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum UnusableLicence {
    #[error("the licence in the order is not a text; report it to the vendor")]
    NotText,
    #[error("the licence in the order is not accepted: {0}; report it to the vendor")]
    Refused(#[from] LicenceError),
}

/// The newest licence of the install that this runner has accepted. Orders that waited may bring an older one.
#[derive(Debug)]
pub struct NewestLicence {
    trust: Trust,
    file: PathBuf,
    accepted: Mutex<Option<Accepted>>,
}

#[derive(Debug)]
struct Accepted {
    serial: u64,
    signed_at: Timestamp,
    text: String,
}

impl Accepted {
    fn new(licence: &Licence, text: String) -> Self {
        Self { serial: licence.serial, signed_at: licence.signed_at, text }
    }
}

impl NewestLicence {
    /// Returns the newest licence, which the state directory has if an order has brought one.
    pub fn open(config: &Config, trust: Trust) -> Self {
        let file = config.state_dir.join(FILE);
        let accepted = Mutex::new(read(&file, &trust));
        Self { trust, file, accepted }
    }

    /// Returns `order` with the newest licence in its values, if it brings a licence. A licence never stops a removal: without
    /// a licence that can be used, the templates of a removal read the licence that was accepted last, or an empty text.
    ///
    /// # Errors
    /// [`UnusableLicence`], for an order that is not a removal.
    pub fn add_to(&self, mut order: Order) -> Result<Order, UnusableLicence> {
        let is_removal = matches!(order.work, Work::Remove(_));
        let Some(install) = order.context.pointer_mut(INSTALL).and_then(Value::as_object_mut) else {
            return Ok(order);
        };
        let newest = match install.get(LICENCE) {
            Some(brought) => self.newest(brought),
            None if is_removal => Ok(self.last()),
            None => return Ok(order),
        };
        let used = match newest {
            Err(error) if is_removal => {
                warn!("The removal of a part does not use the licence in its order: {error}");
                self.last()
            }
            newest => newest?,
        };
        install.insert(LICENCE.to_owned(), Value::String(used));
        Ok(order)
    }

    /// Returns the text of the licence that was accepted last; empty before the first one.
    fn last(&self) -> String {
        let accepted = self.accepted.lock().unwrap_or_else(PoisonError::into_inner);
        accepted.as_ref().map(|last| last.text.clone()).unwrap_or_default()
    }

    /// Returns `brought`, or the newest licence if this runner has accepted a newer one.
    fn newest(&self, brought: &Value) -> Result<String, UnusableLicence> {
        let brought = brought.as_str().ok_or(UnusableLicence::NotText)?;
        let licence = verified(brought, &self.trust)?;
        let mut accepted = self.accepted.lock().unwrap_or_else(PoisonError::into_inner);
        match accepted.as_ref() {
            // The control plane signs a licence again, under the same serial, after another root key has followed.
            Some(known) if (known.serial, known.signed_at) > (licence.serial, licence.signed_at) => {
                warn!("Used licence {}: the order brings licence {}, which is older", known.serial, licence.serial);
                Ok(known.text.clone())
            }
            Some(known) if known.text == brought => Ok(known.text.clone()),
            Some(_) | None => {
                info!("Accepted licence {} of this install", licence.serial);
                if let Err(error) = files::write_atomic(&self.file, brought.as_bytes()) {
                    let file = self.file.display();
                    error!("Cannot write `{file}`; after a restart an order may bring an older licence: {error}");
                }
                *accepted = Some(Accepted::new(&licence, brought.to_owned()));
                Ok(brought.to_owned())
            }
        }
    }
}

/// Returns the licence in `text`, if the control plane signed it for this install.
fn verified(text: &str, trust: &Trust) -> Result<Licence, LicenceError> {
    let licence = Licence::open(text.as_bytes(), &trust.roots.now())?;
    licence.check_install(&trust.tenant, &trust.install)?;
    Ok(licence)
}

/// Returns the licence in the file. A licence that is not accepted any more does not count: the next order brings the
/// current one.
fn read(file: &Path, trust: &Trust) -> Option<Accepted> {
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
        Err(error) => {
            warn!("Cannot read the licence in `{}`: {error}", file.display());
            return None;
        }
    };
    match verified(&text, trust) {
        Ok(licence) => Some(Accepted::new(&licence, text)),
        Err(error) => {
            warn!("Ignored the licence in `{}`: {error}", file.display());
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use freehold_protocol::KeyUse;
    use freehold_protocol::order::RemovePart;
    use serde_json::json;

    use super::*;
    use crate::config::Role;
    use crate::testing::{config, order, sealed, sealed_by, sealed_with};

    fn licence(serial: u64) -> Licence {
        Licence {
            tenant: "acme".parse().unwrap(),
            install: "globex-prod".parse().unwrap(),
            app: "shop".parse().unwrap(),
            serial,
            issued_at: Timestamp::from_millis(1_000_000),
            signed_at: Timestamp::from_millis(1_000_000),
            not_after: None,
            withdrawn: false,
            facts: [("seats".to_owned(), json!(serial))].into(),
        }
    }

    fn open(state: &tempfile::TempDir) -> NewestLicence {
        let config = config(state.path().to_str().unwrap(), Role::Install);
        let trust = Trust::open(&config).unwrap();
        NewestLicence::open(&config, trust)
    }

    /// Returns what templates read after an order has brought `value`.
    fn brought(newest: &NewestLicence, value: impl Into<Value>) -> Result<String, String> {
        let value: Value = value.into();
        let context = json!({ "nuon": { "install": { "id": "globex-prod", "licence": value } } });
        let order = newest.add_to(Order { context, ..order(1, 7) }).map_err(|error| error.to_string())?;
        Ok(licence_in(&order))
    }

    fn licence_in(order: &Order) -> String {
        order.context.pointer("/nuon/install/licence").unwrap().as_str().unwrap().to_owned()
    }

    #[test]
    fn an_older_licence_never_replaces_a_newer_one_not_even_after_a_restart() {
        let state = tempfile::tempdir().unwrap();
        let (first, second) = (sealed(&licence(1)), sealed(&licence(2)));
        let newest = open(&state);

        assert_eq!(brought(&newest, first.as_str()).unwrap(), first);
        assert_eq!(brought(&newest, second.as_str()).unwrap(), second);
        assert_eq!(brought(&newest, first.as_str()).unwrap(), second);
        let restarted = open(&state);
        assert_eq!(brought(&restarted, first.as_str()).unwrap(), second);
        assert_eq!(brought(&restarted, second.as_str()).unwrap(), second);
    }

    #[test]
    fn a_licence_that_another_root_signed_or_that_is_for_another_install_is_refused() {
        let state = tempfile::tempdir().unwrap();
        let newest = open(&state);
        let stranger = ed25519_dalek::SigningKey::from_bytes(&[9; 32]);
        let of_other_install = Licence { install: "initech".parse().unwrap(), ..licence(9) };
        let late = Licence { signed_at: Timestamp::from_millis(9_000_001), ..licence(9) };
        let of_orders = sealed_with(&crate::testing::root(), "acme", [KeyUse::Orders].into(), &licence(9));
        let cases: [(Value, &str); 6] = [
            (sealed_by(&stranger, "acme", &licence(9)).into(), "message is not signed by key"),
            (sealed(&of_other_install).into(), "it belongs to install `initech` of tenant `acme`"),
            (sealed(&late).into(), "is not valid at this time"),
            (of_orders.into(), "may not sign licences: its certificate is for orders"),
            ("x".repeat(40_000).into(), "it has 40000 bytes"),
            (json!({ "seats": 9 }), "is not a text"),
        ];

        for (value, reason) in cases {
            let refused = brought(&newest, value).unwrap_err();
            assert!(refused.contains(reason) && refused.ends_with("; report it to the vendor"), "{refused}");
        }
        assert_eq!(brought(&newest, sealed(&licence(1))).unwrap(), sealed(&licence(1)));
    }

    #[test]
    fn a_licence_that_was_signed_again_is_used_and_an_order_without_one_stays_as_it_is() {
        let state = tempfile::tempdir().unwrap();
        let newest = open(&state);
        let again = sealed(&Licence { signed_at: Timestamp::from_millis(2_000_000), ..licence(1) });
        let bare = Order { context: json!({ "nuon": { "install": { "id": "globex-prod" } } }), ..order(1, 7) };

        brought(&newest, sealed(&licence(1))).unwrap();

        assert_eq!(brought(&newest, again.as_str()).unwrap(), again);
        assert_eq!(
            brought(&newest, sealed(&licence(1))).unwrap(),
            again,
            "an order that waited has the former signature"
        );
        assert_eq!(newest.add_to(bare.clone()).unwrap(), bare);
    }

    #[test]
    fn a_licence_never_stops_a_removal() {
        let state = tempfile::tempdir().unwrap();
        let newest = open(&state);
        let removal = |install: Value| {
            let what = Box::new(order(1, 7).work);
            let work = Work::Remove(RemovePart { what, destroy_data: false, removes_policies: false });
            let context = json!({ "nuon": { "install": install } });
            licence_in(&newest.add_to(Order { context, work, ..order(1, 7) }).unwrap())
        };
        let stranger = sealed_by(&ed25519_dalek::SigningKey::from_bytes(&[9; 32]), "acme", &licence(9));
        let over = Licence { not_after: Some(Timestamp::from_millis(1)), ..licence(2) };

        assert_eq!([removal(json!({})), removal(json!({ "licence": stranger }))], [String::new(), String::new()]);
        let over = sealed(&over);
        assert_eq!(removal(json!({ "licence": over })), over);
        assert_eq!([removal(json!({ "licence": stranger })), removal(json!({}))], [over.clone(), over]);
    }

    #[test]
    fn a_broken_file_counts_as_no_licence() {
        let state = tempfile::tempdir().unwrap();
        std::fs::write(state.path().join(FILE), "{").unwrap();

        assert_eq!(brought(&open(&state), sealed(&licence(1))).unwrap(), sealed(&licence(1)));
    }
}
