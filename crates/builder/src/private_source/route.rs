//! The paths by which a program in a box names a repository to the services: `/HOST/PATH`, or `/HOST+PORT/PATH`.

use freehold_protocol::source::{Scheme, SourceAddress};

/// A repository, as a program in the box names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Repository {
    pub(super) address: SourceAddress,
    /// The path on the server, as the program wrote it: it may end in `.git`.
    pub(super) path: String,
}

impl Repository {
    /// Returns the repository at `url`; `None` when there can be no credential for it.
    pub(super) fn of_url(url: &str) -> Option<Self> {
        let (_, rest) = url.split_once("://")?;
        let (_, path) = rest.split_once('/')?;
        Some(Self { address: SourceAddress::of_git(url)?, path: path.to_owned() })
    }

    /// Returns the repository that the path of a request names.
    pub(super) fn of_path(scheme: Scheme, path: &str) -> Option<Self> {
        let (host, path) = path.strip_prefix('/')?.split_once('/').filter(|(host, _)| !host.contains('@'))?;
        Self::of_url(&format!("{}://{}/{path}", scheme.as_str(), host.replacen('+', ":", 1)))
    }

    /// Returns the path of a request for this repository.
    pub(super) fn as_path(&self) -> String {
        format!("/{}/{}", self.address.authority().replacen(':', "+", 1), self.path)
    }
}

/// Returns the source with the longest address that covers `address`.
pub(super) fn nearest<'a, T>(
    all: &'a [T],
    of: impl Fn(&T) -> &SourceAddress,
    address: &SourceAddress,
) -> Option<&'a T> {
    all.iter().filter(|one| of(one).covers(address)).max_by_key(|one| of(one).to_string().len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_address_that_covers_is_used() {
        let all: Vec<SourceAddress> =
            ["https://h.example", "https://h.example/acme"].map(|one| one.parse().unwrap()).into();
        let found = |text: &str| nearest(&all, |one| one, &text.parse().unwrap()).unwrap().to_string();

        assert_eq!(found("https://h.example/acme/y"), "https://h.example/acme");
        assert_eq!(found("https://h.example/acme-evil/y"), "https://h.example");
    }

    #[test]
    fn a_path_names_the_repository_of_its_url() {
        let url = "https://git.example:8443/acme/demo.git";

        let repository = Repository::of_url(url).unwrap();

        assert_eq!(repository.as_path(), "/git.example+8443/acme/demo.git");
        assert_eq!(Repository::of_path(Scheme::Https, &repository.as_path()), Some(repository));
    }

    #[test]
    fn a_path_that_a_server_could_read_in_another_way_names_nothing() {
        for path in [
            "",
            "/git.example",
            "git.example/a",
            "/git.example/../a",
            "/git.example/a%2fb",
            "/git.example//a",
            "/a@b/c",
        ] {
            assert_eq!(Repository::of_path(Scheme::Https, path), None, "{path}");
        }
    }
}
