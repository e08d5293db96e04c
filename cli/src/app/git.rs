//! Resolves branches and tags to commits with `git ls-remote`, which uses the user's own git credentials.

use std::process::Stdio;

use tokio::process::Command;

use crate::error::{Error, Result};

/// Returns the commit that `branch` (a branch, a tag or a full ref) points to in the repository at `url`.
pub(super) async fn commit_of(url: &str, branch: &str) -> Result<String> {
    let refs = [
        format!("refs/heads/{branch}"),
        format!("refs/tags/{branch}"),
        format!("refs/tags/{branch}^{{}}"),
        branch.to_owned(),
    ];
    let mut git = Command::new("git");
    // `--` ends the options: `git` must not read an address as an option.
    git.args(["ls-remote", "--quiet", "--", url]).args(&refs);
    git.env("GIT_TERMINAL_PROMPT", "0").stdin(Stdio::null()).kill_on_drop(true);
    let done = git.output().await.map_err(|e| Error::invalid(format!("cannot run `git`: {e}; install git")))?;
    if !done.status.success() {
        let errors = String::from_utf8_lossy(&done.stderr);
        let reason = errors.lines().last().unwrap_or("git gave no reason").to_owned();
        return Err(Error::invalid(format!(
            "cannot read the git repository `{url}`: {reason}; check the address and your access"
        )));
    }
    chosen(&String::from_utf8_lossy(&done.stdout), branch).ok_or_else(|| {
        Error::invalid(format!(
            "the git repository `{url}` has no branch or tag `{branch}`; check the config's `branch`"
        ))
    })
}

/// Chooses one commit from the listing. A branch takes precedence over a tag, and the commit of an annotated tag over
/// the tag object.
fn chosen(listing: &str, branch: &str) -> Option<String> {
    let found: Vec<(&str, &str)> = listing.lines().filter_map(|line| line.split_once('\t')).collect();
    let wanted = [
        format!("refs/heads/{branch}"),
        format!("refs/tags/{branch}^{{}}"),
        format!("refs/tags/{branch}"),
        branch.to_owned(),
    ];
    wanted.iter().find_map(|name| found.iter().find(|(_, known)| known == name)).map(|(commit, _)| (*commit).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTING: &str = "aaaa\trefs/tags/v1\nbbbb\trefs/tags/v1^{}\ncccc\trefs/heads/main\ndddd\trefs/heads/x/main\n";

    #[test]
    fn a_branch_is_taken_by_its_whole_name_and_a_tag_by_its_commit() {
        assert_eq!(chosen(LISTING, "main").as_deref(), Some("cccc"));
        assert_eq!(chosen(LISTING, "v1").as_deref(), Some("bbbb"));
        assert_eq!(chosen(LISTING, "x"), None);
    }
}
