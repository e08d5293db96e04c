//! Credentials that must not leave: a job gets them from its endpoint, prints them in every spelling, and what its log
//! reports and keeps is searched.

mod spelling;

use aws_credential_types::Credentials;
use aws_credential_types::provider::SharedCredentialsProvider;
use freehold_fuzz::Draw;
use freehold_runner::identity::credentials_endpoint::CredentialsEndpoint;
use freehold_runner::record::log::JobLog;

use spelling::Spelled;
pub use spelling::{SPELLINGS, Spelling};

/// A run of this many characters of a spelled secret at a multiple of half of them is a leak; so any of 23 is one.
const LEAK: usize = 16;
/// The longest line without an end that is written around a secret, in bytes.
const NOISE: usize = 20_000;

/// The credentials of one job.
#[derive(Debug)]
pub struct Canary {
    id: String,
    secret: String,
    token: String,
}

impl Canary {
    /// Draws credentials of the form that STS gives.
    pub fn draw(draw: &mut Draw) -> Self {
        const UPPER: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
        const BASE64: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let token = 300 + draw.below(900);
        Self {
            id: format!("ASIA{}", text(draw, UPPER, 16)),
            secret: text(draw, BASE64, 40),
            token: format!("IQoJb3JpZ2luX2VjE{}==", text(draw, BASE64, token)),
        }
    }

    /// Lets a job print the credentials in every spelling; returns the spellings of which something left.
    ///
    /// # Errors
    /// When the endpoint does not give the credentials.
    pub async fn leaks(&self, draw: &mut Draw) -> anyhow::Result<Vec<Spelling>> {
        let folder = tempfile::tempdir()?;
        let kept = folder.path().join("job.log");
        let log = JobLog::to_file(&kept)?;
        self.fetch(&log).await?;
        let mut leaked = Vec::new();
        let mut seen = 0;
        for spelling in SPELLINGS {
            for secret in [&self.id, &self.secret, &self.token] {
                let spelled = spelling.spell(draw, secret);
                print(draw, &log, &spelled);
                let kept = std::fs::read_to_string(&kept)?;
                if is_in(&spelled, &drain(&log)) || is_in(&spelled, &kept[seen..]) {
                    leaked.push(spelling);
                }
                seen = kept.len();
            }
        }
        leaked.dedup();
        Ok(leaked)
    }

    /// Asks the endpoint, as the SDK of a job does. Nothing else tells the log what to redact.
    async fn fetch(&self, log: &JobLog) -> anyhow::Result<()> {
        let credentials = Credentials::new(&self.id, &self.secret, Some(self.token.clone()), None, "canary");
        let endpoint = CredentialsEndpoint::start(SharedCredentialsProvider::new(credentials), log.clone()).await?;
        let mut variables = endpoint.environment();
        let mut variable = |name: &str| variables.remove(name).unwrap_or_default();
        let url = variable("AWS_CONTAINER_CREDENTIALS_FULL_URI");
        let token = variable("AWS_CONTAINER_AUTHORIZATION_TOKEN");
        let answer = freehold_oci::client()?.get(url).header("authorization", token).send().await?;
        let document: serde_json::Value = answer.error_for_status()?.json().await?;
        anyhow::ensure!(document["SecretAccessKey"] == self.secret.as_str(), "the endpoint serves something else");
        Ok(())
    }
}

fn text(draw: &mut Draw, from: &[u8], length: usize) -> String {
    (0..length).map(|_| char::from(*draw.pick(from))).collect()
}

/// Writes a spelled secret, cut anywhere, while another output of the process writes too.
fn print(draw: &mut Draw, log: &JobLog, spelled: &Spelled) {
    let noise = if draw.one_in(4) { draw.below(NOISE) } else { draw.below(40) };
    let line = format!("{}{}{}\n", "n ".repeat(noise / 2), spelled.text, " n".repeat(noise / 2));
    let (mut out, mut other) = (log.stream(), log.stream());
    let mut rest = line.as_bytes();
    while !rest.is_empty() {
        let most = if draw.one_in(2) { 8 } else { 4_000 };
        let (now, later) = rest.split_at(rest.len().min(1 + draw.below(most)));
        out.bytes(now);
        if draw.one_in(5) {
            other.bytes(b"other\n");
        }
        rest = later;
    }
}

fn drain(log: &JobLog) -> String {
    let mut text = String::new();
    while log.has_pending() {
        text.push_str(&log.take_chunk());
    }
    text
}

/// Returns whether a run of the secret's own characters is in `text`; a line may be cut anywhere.
fn is_in(spelled: &Spelled, text: &str) -> bool {
    let text = text.replace('\n', "");
    let mut windows = spelled.text[spelled.secret.clone()]
        .lines()
        .flat_map(|line| (LEAK..=line.len()).step_by(LEAK / 2).map(|end| &line[end - LEAK..end]));
    windows.any(|window| text.contains(window))
}

#[cfg(test)]
mod tests {
    use freehold_redaction::redact_by_shape;

    use super::*;

    #[tokio::test]
    async fn a_log_that_redacts_nothing_leaks_every_spelling() {
        let mut draw = Draw::new(1, 1);
        let canary = Canary::draw(&mut draw);

        for spelling in SPELLINGS {
            let log = JobLog::default();
            let spelled = spelling.spell(&mut draw, &canary.secret);
            print(&mut draw, &log, &spelled);
            log.close();
            assert!(is_in(&spelled, &drain(&log)), "{spelling:?}: {}", spelled.text);
        }
    }

    #[tokio::test]
    async fn no_spelling_of_what_the_endpoint_gave_leaves_by_the_log() {
        let mut draw = Draw::new(1, 2);

        let leaked = Canary::draw(&mut draw).leaks(&mut draw).await.unwrap();

        assert!(leaked.is_empty(), "{leaked:?}");
    }

    /// A support bundle contains texts of which nobody knows the secrets.
    #[test]
    fn no_spelling_of_a_thousand_secrets_that_nobody_knows_is_left_by_a_redaction_by_shape() {
        let mut left = Vec::new();
        for number in 0..1_000 {
            let mut draw = Draw::new(2, number);
            let canary = Canary::draw(&mut draw);
            let token = (number % 20 == 0).then_some(&canary.token);
            for spelling in SPELLINGS {
                for secret in [&canary.id, &canary.secret].into_iter().chain(token) {
                    let spelled = spelling.spell(&mut draw, secret);
                    let noise = "n ".repeat(draw.below(20));
                    let text = redact_by_shape(&format!("{noise}{}\n{noise}", spelled.text)).text;
                    if is_in(&spelled, &text) {
                        left.push((number, spelling, spelled.text, text));
                    }
                }
            }
        }

        assert!(left.is_empty(), "{left:#?}");
    }
}
