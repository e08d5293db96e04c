//! Tampered artifacts, manifests, statements and grants by seed and number. The product's code has to refuse each, and
//! no target may hold tampered bytes afterwards. `accepted_originals` proves that the same code accepts the originals.
//!
//! Only a change of meaning counts as tampering. Blobs and manifests are named by their digest: any other byte is one.
//! For an envelope the decoded payload counts, not the JSON around it.

mod bytes;
mod copies;
mod grants;
mod images;
mod registry;
mod statements;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use freehold_fuzz::{Draw, Target};
use freehold_protocol::order::{Package, Source};
use tokio::runtime::Runtime;

use copies::{CopyCase, Ended, PushCase, ReadCase, Registries};
use grants::{GrantCase, ManifestsCase, Waiting};
use images::Image;
use registry::Registry;
use statements::{Signed, StatementCase};

/// Good artifacts with their statements and grants, and the registries that lie about them.
pub struct Tampers {
    runtime: Runtime,
    registries: Registries,
    images: Vec<Image>,
    /// One of each artifact, in the sequence of the artifacts; then more.
    statements: Vec<Signed>,
    waiting: Vec<Waiting>,
    refused: Mutex<BTreeMap<(&'static str, String), u64>>,
}

/// One tampering.
pub struct Tampering(Case);

enum Case {
    Blob(CopyCase),
    Manifest(CopyCase),
    Push(PushCase),
    Read(ReadCase),
    Statement(StatementCase),
    Grant(GrantCase),
    Granted(ManifestsCase),
}

impl Tampering {
    fn shown(&self) -> (&'static str, &str) {
        match &self.0 {
            Case::Blob(case) => ("blob copied", &case.what),
            Case::Manifest(case) => ("manifest copied", &case.what),
            Case::Push(case) => ("blob pushed", &case.what),
            Case::Read(case) => ("statement read from a registry", &case.what),
            Case::Statement(case) => ("statement", &case.what),
            Case::Grant(case) => ("grant", &case.what),
            Case::Granted(case) => ("manifests of a grant", &case.what),
        }
    }
}

impl fmt::Debug for Tampering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (family, what) = self.shown();
        write!(f, "{family}: {what}")
    }
}

impl Tampers {
    /// Returns the good ones of `seed`, and starts the registries.
    ///
    /// # Errors
    /// When nothing can listen on this machine.
    pub fn new(seed: u64) -> anyhow::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let http = freehold_oci::client()?;
        let registries = runtime.block_on(async {
            anyhow::Ok(Registries { from: Registry::start(http.clone()).await?, to: Registry::start(http).await? })
        })?;
        let mut images = Image::all(seed);
        let mut statements = Vec::new();
        for (number, image) in images.iter_mut().enumerate() {
            let tenant = ["acme", "globex"][number % 2];
            let signed = Signed::new(number, tenant, image.top(), Package::Image, source(number));
            image.refer(statements::text(&signed.envelope));
            statements.push(signed);
        }
        let count = statements.len();
        for number in count..count + 7 {
            let artifact = freehold_protocol::Digest::of(format!("artifact {number} of {seed}").as_bytes());
            let tenant = ["acme", "globex"][number % 2];
            statements.push(Signed::new(number, tenant, &artifact, Package::TerraformModule, source(number)));
        }
        let waiting = Waiting::all(&images);
        Ok(Self { runtime, registries, images, statements, waiting, refused: Mutex::default() })
    }

    /// Feeds everything in untampered; returns how many there were.
    ///
    /// # Errors
    /// Which of them were not accepted: a check that refuses everything would refuse what is tampered too.
    pub fn accepted_originals(&self) -> Result<usize, String> {
        let (images, mut cases) = (&self.images, Vec::new());
        cases.extend(copies::original_copies(images).into_iter().map(Case::Blob));
        cases.extend(copies::original_pushes(images).into_iter().map(Case::Push));
        cases.extend(copies::original_reads(images).into_iter().map(Case::Read));
        cases.extend(statements::originals(&self.statements).into_iter().map(Case::Statement));
        cases.extend(grants::originals(&self.waiting).into_iter().map(Case::Grant));
        cases.extend(grants::original_manifests(images).into_iter().map(Case::Granted));
        let cases: Vec<Tampering> = cases.into_iter().map(Tampering).collect();
        let why = |case: &Tampering| match self.end(case) {
            Ended::Accepted => None,
            Ended::Refused(why) | Ended::Wrong(why) => Some(format!("{case:?}: {why}")),
        };
        let refused: Vec<String> = cases.iter().filter_map(why).collect();
        if refused.is_empty() { Ok(cases.len()) } else { Err(refused.join("\n")) }
    }

    /// Returns how many were refused, by what they were and by the reason.
    pub fn refused(&self) -> BTreeMap<(&'static str, String), u64> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn end(&self, tampering: &Tampering) -> Ended {
        let images = &self.images;
        let believed = |taken: Result<(), String>| taken.map_or_else(Ended::Refused, |()| Ended::Accepted);
        match &tampering.0 {
            Case::Blob(case) | Case::Manifest(case) => self.runtime.block_on(self.registries.copy(images, case)),
            Case::Push(case) => {
                let pushed = self.runtime.block_on(self.registries.push(images, case));
                pushed.unwrap_or_else(|error| Ended::Wrong(error.to_string()))
            }
            Case::Read(case) => {
                let read = self.registries.read(images, &self.statements[case.of], case);
                self.runtime.block_on(read)
            }
            Case::Statement(case) => believed(self.statements[case.of].read(&case.text).map(|_| ())),
            Case::Grant(case) => believed(self.waiting[case.of].take(&case.body)),
            Case::Granted(case) => believed(grants::take_manifests(&images[case.of], &case.granted)),
        }
    }
}

fn source(number: usize) -> Source {
    match number % 3 {
        0 => Source::Image { reference: "docker.io/library/nginx:1.27".into() },
        1 => Source::Git {
            url: "https://example.com/app".into(),
            commit: format!("{number:040x}"),
            directory: "infra".into(),
            branch: String::new(),
        },
        _ => Source::Directory { digest: freehold_protocol::Digest::of(&[number as u8]) },
    }
}

impl Target for Tampers {
    type Input = Tampering;

    fn input(&self, draw: &mut Draw) -> Tampering {
        let images = &self.images;
        Tampering(match draw.below(20) {
            0..=3 => Case::Blob(copies::draw_blob(draw, images)),
            4..=7 => Case::Manifest(copies::draw_manifest(draw, images)),
            8 | 9 => Case::Push(copies::draw_push(draw, images)),
            10 => Case::Read(copies::draw_read(draw, images)),
            11..=15 => Case::Statement(statements::draw(draw, &self.statements)),
            16 | 17 => Case::Grant(grants::draw(draw, &self.waiting)),
            _ => Case::Granted(grants::draw_manifests(draw, images)),
        })
    }

    /// Returns false: nothing is accepted.
    ///
    /// # Panics
    /// When it is accepted, or refused for a reason that has nothing to do with it.
    fn feed(&self, input: &Tampering) -> bool {
        match self.end(input) {
            Ended::Refused(why) => {
                let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
                *refused.entry((input.shown().0, why)).or_default() += 1;
                false
            }
            Ended::Accepted => panic!("accepted"),
            Ended::Wrong(what) => panic!("{what}"),
        }
    }
}
