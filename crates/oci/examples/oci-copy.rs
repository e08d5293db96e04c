//! Copies one artifact between two registries without logins, and prints the result as JSON. It is for measurements:
//! only the copy engine runs in the process. `peak_kib` is the peak resident set size of this process in KiB. The
//! process reads it itself, because the value that the kernel reports to a parent process can include the parent's
//! memory.

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
    let status = std::fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.split_whitespace().next());
    println!(
        r#"{{"peak_kib":{},"digest":"{}","unchanged":{},"held":{},"mounted":{},"sent":{},"sent_bytes":{}}}"#,
        peak.unwrap_or("0"),
        copied.artifact.digest,
        copied.unchanged,
        copied.moved.held,
        copied.moved.mounted,
        copied.moved.sent,
        copied.moved.sent_bytes
    );
    Ok(())
}
