//! Holes are the places of the rendered template that an app fills in. This module checks their values without knowing
//! the app.

use freehold_protocol::app_version::is_graviton_type;
use freehold_protocol::limits::MAX_TITLE_CHARS;
use freehold_protocol::shape::is_format;

/// A kind of value that an app fills in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hole {
    /// One line of text for people: a description.
    Line,
    /// A title for people, one short line.
    Label,
    /// The description of a secret for a sensitive input, one line.
    SecretDescription,
    /// The description of a secret of the app, one line.
    AppSecretDescription,
    /// The default of an input.
    Default,
    /// The default of an input that is a number.
    DefaultNumber,
    /// The type of the runner's machine.
    MachineType,
    /// The inline policies of a role.
    Policies,
}

/// The first character of the text that marks a hole (Unicode, private use area).
const MARK: char = '\u{f001}';
const ALL: [(Hole, &str); 8] = [
    (Hole::Line, "line"),
    (Hole::Label, "label"),
    (Hole::SecretDescription, "secret-description"),
    (Hole::AppSecretDescription, "app-secret-description"),
    (Hole::Default, "default"),
    (Hole::DefaultNumber, "default-number"),
    (Hole::MachineType, "machine-type"),
    (Hole::Policies, "policies"),
];
/// The start of a dynamic reference, which CloudFormation replaces with a parameter or a secret of the account.
const REFERENCE: &str = "{{resolve:";
/// The maximum number of characters of a line. The longest is an input's description with a note about its kind of
/// answer.
const LINE_CHARS: usize = 600;
/// The maximum length of a parameter's default, in bytes (AWS CloudFormation quotas, "Parameter value size").
const DEFAULT_BYTES: usize = 4096;

impl Hole {
    /// Returns the text that marks the hole in the rendered template, as a quoted scalar.
    pub(super) fn quoted(self) -> String {
        let name = ALL.iter().find(|(hole, _)| *hole == self).map_or("", |(_, name)| name);
        format!("\"{MARK}{name}\"")
    }

    /// Returns the hole that a text of the rendered template marks; `None` for any other text.
    pub(super) fn of(text: &str) -> Option<Self> {
        let name = text.strip_prefix(MARK)?;
        ALL.iter().find(|(_, known)| *known == name).map(|(hole, _)| *hole)
    }

    /// Returns the reason why a text is not allowed in this hole; `None` when it is allowed. `Policies` allows no text.
    pub(super) fn refuses(self, text: &str, account: &str) -> Option<String> {
        if text.contains(REFERENCE) {
            return Some("contains a dynamic reference of CloudFormation (`{{resolve:`)".to_owned());
        }
        let is_clean = !text.contains(|c: char| c.is_control() || is_format(c));
        let is_line = is_clean && text.chars().count() <= LINE_CHARS;
        match self {
            Self::Line if is_line => None,
            Self::Label if is_clean && text.chars().count() <= MAX_TITLE_CHARS => None,
            Self::SecretDescription if is_line && text.starts_with("Answer to ") => None,
            Self::AppSecretDescription if is_line && text.starts_with("Secret of the app: ") => None,
            Self::Line => Some(format!("is not one line of at most {LINE_CHARS} visible characters")),
            Self::Label => Some(format!("is not one line of at most {MAX_TITLE_CHARS} visible characters")),
            Self::SecretDescription => Some("is not one line that begins with `Answer to `".to_owned()),
            Self::AppSecretDescription => Some("is not one line that begins with `Secret of the app: `".to_owned()),
            Self::MachineType if is_graviton_type(text) => None,
            Self::MachineType => {
                Some("is not a type of machine with a Graviton processor, such as `t4g.small`".to_owned())
            }
            Self::DefaultNumber if text.parse::<f64>().is_err() => Some("is not a number".to_owned()),
            Self::Default | Self::DefaultNumber => refused_default(text, account),
            Self::Policies => Some("is not a list of policies".to_owned()),
        }
    }
}

fn refused_default(text: &str, account: &str) -> Option<String> {
    if text.contains(|c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t')) {
        return Some("holds a control character".to_owned());
    }
    if text.len() > DEFAULT_BYTES {
        return Some(format!("has more than the {DEFAULT_BYTES} bytes of a parameter"));
    }
    foreign_account(text, account).map(|other| format!("names account {other}, which is not yours"))
}

/// Returns the first number of 12 digits in a text that is neither `account` nor an account of AWS, and so may be another
/// account.
pub(super) fn foreign_account<'t>(text: &'t str, account: &str) -> Option<&'t str> {
    let mut numbers = text.split(|c: char| !c.is_ascii_digit()).filter(|number| number.len() == 12);
    numbers.find(|number| *number != account && !is_account_of_aws(number))
}

/// Returns whether a number is an account of AWS that its documentation tells customers to name in policies and settings.
pub(super) fn is_account_of_aws(number: &str) -> bool {
    ACCOUNTS_OF_AWS.contains(&number)
}

/// The accounts from which AWS serves the images of EKS's own programs (most regions) and of its deep learning containers,
/// and those that write access logs of load balancers in one region each (Elastic Load Balancing user guide, "Enable
/// access logs").
const ACCOUNTS_OF_AWS: [&str; 24] = [
    "602401143452",
    "763104351884",
    "009996457667",
    "027434742980",
    "033677994240",
    "054676820928",
    "076674570225",
    "098369216593",
    "114774131450",
    "127311923021",
    "156460612806",
    "383597477331",
    "507241528517",
    "582318560864",
    "589379963580",
    "600734575887",
    "635631232127",
    "652711504416",
    "718504428378",
    "754344448648",
    "783225319266",
    "797873946194",
    "897822967062",
    "985666609251",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_in_any_language_are_accepted() {
        for text in ["Größe", "日本", "العربية", "😀 days", "x".repeat(120).as_str()] {
            assert_eq!(Hole::Label.refuses(text, "222222222222"), None, "{text}");
        }
    }

    #[test]
    fn each_hole_is_known_by_its_text() {
        for (hole, _) in ALL {
            assert_eq!(Hole::of(hole.quoted().trim_matches('"')), Some(hole));
        }
        assert_eq!(Hole::of("line"), None);
    }

    #[test]
    fn a_text_that_does_not_belong_is_refused_with_the_reason() {
        let long = "x".repeat(121);
        for (hole, text, why) in [
            (Hole::Line, "a\nb", "is not one line"),
            (Hole::Line, "a\u{202e}b", "is not one line of at most 600 visible characters"),
            (Hole::Label, "a\u{200b}b", "is not one line of at most 120 visible characters"),
            (Hole::Label, long.as_str(), "is not one line of at most 120 visible characters"),
            (Hole::SecretDescription, "The secret", "is not one line that begins with `Answer to `"),
            (Hole::SecretDescription, "Answer to {{resolve:ssm:x}}", "contains a dynamic reference"),
            (Hole::Default, "{{resolve:secretsmanager:prod/db}}", "contains a dynamic reference"),
            (Hole::Default, "a\u{7}", "holds a control character"),
            (Hole::Default, "arn:aws:iam::999999999999:root", "names account 999999999999"),
            (Hole::DefaultNumber, "many", "is not a number"),
            (Hole::MachineType, "t3.small", "is not a type of machine with a Graviton processor"),
        ] {
            let found = hole.refuses(text, "222222222222").unwrap();
            assert!(found.starts_with(why), "{found}");
        }
        assert_eq!(Hole::Default.refuses("a\n222222222222", "222222222222"), None);
        assert_eq!(Hole::Default.refuses("1234567890123", "222222222222"), None);
        let image = "602401143452.dkr.ecr.eu-west-1.amazonaws.com/eks/coredns";
        assert_eq!(Hole::Default.refuses(image, "222222222222"), None);
        let both = Hole::Default.refuses("602401143452,999999999999", "222222222222");
        assert_eq!(both.unwrap(), "names account 999999999999, which is not yours");
    }
}
