//! Copies one artifact between two registries without logins, and prints what it did as JSON: the engine alone in a
//! process, for measuring.

use freehold_oci::{CopyOptions, Login, Reference, Repository, client, copy};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [from, to] = words.as_slice() else { return Err("usage: oci-copy HOST/NAME:TAG HOST/NAME".into()) };
    let (from, to): (Reference, Reference) = (from.parse()?, to.parse()?);
    let http = client()?;
    let repository =
        |reference: &Reference| Repository::new(http.clone(), &reference.host, &reference.repository, Login::Anonymous);
    let copied = copy(&repository(&from)?, &from.version, &repository(&to)?, &CopyOptions::default()).await?;
    println!(
        r#"{{"digest":"{}","unchanged":{},"held":{},"mounted":{},"sent":{},"sent_bytes":{}}}"#,
        copied.artifact.digest,
        copied.unchanged,
        copied.moved.held,
        copied.moved.mounted,
        copied.moved.sent,
        copied.moved.sent_bytes
    );
    Ok(())
}
