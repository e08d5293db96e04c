//! Builds the options with which `bwrap` makes a box. `bwrap` reads them from a file descriptor, because every user of
//! the machine can read a command line.

mod hidden_paths;
mod image;
mod loader;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use command_fds::FdMapping;

use crate::config::limits::Limits;
use crate::sandbox::environment::paths;
use crate::sandbox::program::INSIDE;
use crate::sandbox::purpose::Purpose;
use crate::sandbox::users::{INSIDE_USER, JobUser, RUNNER_INSIDE};
use crate::sandbox::{init, seccomp};
use loader::Loader;

/// The path inside a box of the program that runs as its first process.
pub(in crate::sandbox) const INIT: &str = "/run/freehold/init";
/// The directory of that program's libraries and of their loader, inside a box with an image.
const LIBRARIES: &str = "/run/freehold/lib";
const LOADER: &str = "/run/freehold/lib/loader";
/// The number of the first file descriptor that `bwrap` inherits beside the standard three.
const FIRST_FD: i32 = 3;

/// The directories below `/` that programs need. A symbolic link among them becomes a symbolic link in the box.
const ROOT: [&str; 6] = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64"];

/// The parts of `/etc` that programs need, such as certificates and the time zone. On a usual system none of them is
/// secret.
const ETC: [&str; 13] = [
    "alternatives",
    "ca-certificates",
    "crypto-policies",
    "host.conf",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "mime.types",
    "pki",
    "protocols",
    "services",
    "ssl",
];

/// Files of `/proc` that reveal details of the machine or control the machine.
const MASKED_FILES: [&str; 11] = [
    "/proc/kcore",
    "/proc/keys",
    "/proc/key-users",
    "/proc/kmsg",
    "/proc/kallsyms",
    "/proc/modules",
    "/proc/sched_debug",
    "/proc/sysrq-trigger",
    "/proc/timer_list",
    "/proc/kpagecount",
    "/proc/kpageflags",
];
/// Directories of `/proc` that reveal details of the machine or control the machine.
const MASKED_DIRECTORIES: [&str; 5] = ["/proc/acpi", "/proc/asound", "/proc/bus", "/proc/fs", "/proc/scsi"];

/// Directories that are already in every box, so that no option `--dir` has to make them.
const OWN: [&str; 4] = ["/", "/tmp", "/dev", "/dev/shm"];

/// The capabilities that the first process keeps when a job runs as a user other than the runner's. It needs them to
/// listen at ports below 1024 (`loopback.rs`), to start the program as that user, to change the owner of files, to end the
/// program's processes, and to see which files without a name they have open. They are valid only inside the box's user
/// namespace.
const KEPT: [&str; 8] = [
    "CAP_NET_BIND_SERVICE",
    "CAP_SETUID",
    "CAP_SETGID",
    "CAP_CHOWN",
    "CAP_FOWNER",
    "CAP_DAC_OVERRIDE",
    "CAP_KILL",
    "CAP_SYS_PTRACE",
];

/// The description of a box: its purpose, the paths that a program sees in it, and the size of its `/tmp`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::sandbox) struct Spec {
    pub(in crate::sandbox) purpose: Purpose,
    /// The root file system of an image, if the box shows one instead of the machine's.
    pub(in crate::sandbox) image: Option<PathBuf>,
    /// The directory outside of the box that the job sees as its workspace.
    pub(in crate::sandbox) workspace: PathBuf,
    /// Files and directories that the program may read, under the same path.
    pub(in crate::sandbox) shown: Vec<PathBuf>,
    /// Directories that the program may write to, under the same path.
    pub(in crate::sandbox) writable: Vec<PathBuf>,
    /// The size of `/tmp` and of `/dev/shm`, in bytes. Both are in memory.
    pub(in crate::sandbox) memory_files: u64,
}

impl Spec {
    /// Returns the description of a plain box: it has `workspace` and no other paths of its own. Boxes that are made in
    /// advance are plain.
    pub(in crate::sandbox) fn plain(workspace: &Path, image: Option<PathBuf>, limits: &Limits) -> Self {
        let memory_files = limits.memory_files();
        let (purpose, workspace) = (Purpose::Program, workspace.to_owned());
        Self { purpose, image, workspace, shown: Vec::new(), writable: Vec::new(), memory_files }
    }

    /// Returns whether a plain box with the same image is sufficient for this description.
    pub(in crate::sandbox) fn is_plain(&self) -> bool {
        let shows_no_more = self.shown.iter().all(|path| self.is_shown(path));
        self.purpose == Purpose::Program && self.writable.is_empty() && shows_no_more
    }
}

impl Spec {
    /// Returns the paths at which a box with an image has files of its own instead of the image's.
    pub(in crate::sandbox) fn hidden(&self) -> Vec<PathBuf> {
        hidden_paths::hidden(self.all_shown().into_iter().chain(self.writable.iter().cloned()).chain([INSIDE.into()]))
    }

    /// Returns the files and directories of the machine that the program may read: its own, and those of the runner's
    /// settings, such as certificates.
    fn all_shown(&self) -> Vec<PathBuf> {
        self.shown.iter().cloned().chain(paths().map(|(_, path)| path)).collect()
    }

    /// Returns whether the box shows `path` of the machine anyway.
    fn is_shown(&self, path: &Path) -> bool {
        self.image.is_none()
            && ["/usr", "/etc/ssl", "/etc/pki", "/etc/ca-certificates"].iter().any(|root| path.starts_with(root))
    }
}

/// The options for one run of `bwrap`, and the file descriptors that it inherits.
pub(in crate::sandbox) struct Options {
    bytes: Vec<u8>,
    inherited: Vec<FdMapping>,
    directories: BTreeSet<PathBuf>,
    /// The command of the first process.
    init: Vec<String>,
}

impl Options {
    /// Returns the options for the box that `spec` describes. `user` is the job's user. `program` is the path, outside
    /// of the box, of the program for the first process.
    pub(in crate::sandbox) fn new(spec: &Spec, user: &JobUser, program: &Path) -> std::io::Result<Self> {
        let mut all = Self::empty();
        all.namespaces(user);
        all.filters(spec.purpose)?;
        all.file_systems(spec);
        match &spec.image {
            Some(image) => {
                all.image(image, &spec.hidden())?;
                all.own_libraries(program)?;
            }
            None => all.machine(),
        }
        all.show_as(program, Path::new(INIT));
        all.etc(user)?;
        for path in spec.all_shown().iter().filter(|path| !spec.is_shown(path)) {
            all.show_as(path, path);
        }
        for path in &spec.writable {
            all.bind(path, &path.display().to_string());
        }
        all.bind(&spec.workspace, INSIDE);
        all.add(&["--chdir", INSIDE, "--remount-ro", "/"]);
        Ok(all)
    }

    fn empty() -> Self {
        let init = [INIT, init::COMMAND].map(str::to_owned).to_vec();
        Self { bytes: Vec::new(), inherited: Vec::new(), directories: BTreeSet::new(), init }
    }

    /// Returns the arguments of `bwrap` and the file descriptors that it inherits. `bwrap` writes JSON about the box
    /// into `info`. With `waits`, `bwrap` reads one byte from its standard output before it continues, so that the
    /// runner can map the box's users first.
    pub(in crate::sandbox) fn finish(
        mut self,
        info: OwnedFd,
        waits: bool,
    ) -> std::io::Result<(Vec<String>, Vec<FdMapping>)> {
        let info = self.inherit(info);
        let bytes = std::mem::take(&mut self.bytes);
        let options = self.carry(&bytes)?;
        let mut words = vec!["--args".to_owned(), options, "--info-fd".to_owned(), info];
        if waits {
            // The first process inherits this file descriptor, but a program in the box gets another standard output.
            words.extend(["--userns-block-fd", "1"].map(str::to_owned));
        }
        words.push("--".to_owned());
        words.append(&mut self.init);
        Ok((words, self.inherited))
    }

    fn namespaces(&mut self, user: &JobUser) {
        for space in ["user", "net", "pid", "ipc", "uts", "cgroup-try"] {
            self.add(&[&format!("--unshare-{space}")]);
        }
        // `--die-with-parent` is not used: it ends only the parent of two processes of `bwrap`, and the child waits for
        // ever if the runner is killed before the parent has released the child. The first process of the box ends the
        // box when the runner has ended.
        self.add(&["--as-pid-1", "--new-session", "--hostname", "job", "--clearenv"]);
        self.add(&["--cap-drop", "ALL"]);
        let uid = match user {
            JobUser::Same => {
                self.add(&["--disable-userns", "--assert-userns-disabled"]);
                INSIDE_USER
            }
            // `bwrap` cannot forbid nested user namespaces when another process maps the users. The seccomp filters
            // forbid them in any case.
            JobUser::Other(_) => {
                KEPT.iter().for_each(|kept| self.add(&["--cap-add", kept]));
                RUNNER_INSIDE
            }
        };
        self.add(&["--uid", &uid.to_string(), "--gid", &uid.to_string()]);
    }

    fn filters(&mut self, purpose: Purpose) -> std::io::Result<()> {
        for filter in seccomp::filters(purpose).map_err(std::io::Error::other)? {
            let filter = self.carry(&filter)?;
            self.add(&["--add-seccomp-fd", &filter]);
        }
        Ok(())
    }

    fn file_systems(&mut self, spec: &Spec) {
        self.add(&["--proc", "/proc", "--dev", "/dev"]);
        let size = spec.memory_files.max(1).to_string();
        for place in ["/tmp", "/dev/shm"] {
            self.add(&["--perms", "1777", "--size", &size, "--tmpfs", place]);
        }
        // `/dev` is in memory and has no size limit, so it is read-only.
        self.add(&["--remount-ro", "/dev"]);
        for file in MASKED_FILES.into_iter().filter(|file| Path::new(file).exists()) {
            self.add(&["--ro-bind", "/dev/null", file]);
        }
        for directory in MASKED_DIRECTORIES.into_iter().filter(|directory| Path::new(directory).is_dir()) {
            self.add(&["--size", "4096", "--tmpfs", directory, "--remount-ro", directory]);
        }
        if spec.purpose == Purpose::ImageBuild {
            // Buildah mounts `/sys` in each step. The box has an empty one instead of the machine's.
            self.add(&["--perms", "0755", "--dir", "/sys"]);
        }
    }

    /// Shows the programs of the machine, and the parts of `/etc` that they need.
    fn machine(&mut self) {
        for path in ROOT {
            match std::fs::read_link(path) {
                Ok(target) => self.add(&["--symlink", &target.display().to_string(), path]),
                Err(_) => self.show_as(Path::new(path), Path::new(path)),
            }
        }
        for name in ETC {
            let path = Path::new("/etc").join(name);
            self.show_as(&path, &path);
        }
    }

    /// Shows the libraries of the first process, which starts with them instead of the image's.
    fn own_libraries(&mut self, program: &Path) -> std::io::Result<()> {
        let Some(loader) = Loader::of(program)? else { return Ok(()) };
        self.show_as(&loader.program, Path::new(LOADER));
        for (name, path) in &loader.libraries {
            self.show_as(path, &Path::new(LIBRARIES).join(name));
        }
        self.init = [LOADER, "--library-path", LIBRARIES, INIT, init::COMMAND].map(str::to_owned).to_vec();
        Ok(())
    }

    /// Makes `/etc`. The box has its own lists of users and groups, no name server, and an `/etc/hosts` that the first
    /// process writes.
    fn etc(&mut self, user: &JobUser) -> std::io::Result<()> {
        let id = INSIDE_USER;
        let root = if *user == JobUser::Same { "" } else { "root:x:0:0::/:/bin/false\n" };
        let passwd = format!("{root}job:x:{id}:{id}::{INSIDE}:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n");
        self.directories_of(Path::new("/etc/passwd"));
        let files = [
            ("/etc/passwd", passwd),
            ("/etc/group", format!("job:x:{id}:\nnogroup:x:65534:\n")),
            ("/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n".to_owned()),
            ("/etc/resolv.conf", "# Names are looked up by the runner's proxy.\n".to_owned()),
        ];
        for (path, text) in files {
            let content = self.carry(text.as_bytes())?;
            self.add(&["--perms", "0644", "--ro-bind-data", &content, path]);
        }
        let hosts = self.carry(b"")?;
        self.add(&["--perms", "0644", "--bind-data", &hosts, "/etc/hosts"]);
        Ok(())
    }

    fn add(&mut self, words: &[impl AsRef<OsStr>]) {
        for word in words {
            // Zero bytes are removed: a zero byte inside an argument would start another argument.
            self.bytes.extend(word.as_ref().as_bytes().iter().filter(|byte| **byte != 0));
            self.bytes.push(0);
        }
    }

    fn show_as(&mut self, path: &Path, inside: &Path) {
        self.directories_of(inside);
        self.add(&[OsStr::new("--ro-bind-try"), path.as_os_str(), inside.as_os_str()]);
    }

    fn bind(&mut self, path: &Path, inside: &str) {
        self.directories_of(Path::new(inside));
        self.add(&["--bind", &path.display().to_string(), inside]);
    }

    /// Makes the directories above `inside`. Without this, `bwrap` makes them inaccessible to every user but the box's
    /// own.
    fn directories_of(&mut self, inside: &Path) {
        let above: Vec<PathBuf> = inside.ancestors().skip(1).map(Path::to_owned).collect();
        for directory in above.into_iter().rev().filter(|directory| !OWN.iter().any(|own| directory == Path::new(own)))
        {
            if self.directories.insert(directory.clone()) {
                self.add(&[OsStr::new("--perms"), OsStr::new("0755"), OsStr::new("--dir"), directory.as_os_str()]);
            }
        }
    }

    /// Lets `bwrap` inherit `fd`. Returns the number that it has in `bwrap`.
    fn inherit(&mut self, fd: OwnedFd) -> String {
        let number = self.inherited.iter().map(|mapping| mapping.child_fd + 1).max().unwrap_or(FIRST_FD);
        self.inherited.push(FdMapping { parent_fd: fd, child_fd: number });
        number.to_string()
    }

    /// Lets `bwrap` read `bytes` from a file in memory. Returns the number of the file descriptor in `bwrap`.
    fn carry(&mut self, bytes: &[u8]) -> std::io::Result<String> {
        let file = rustix::fs::memfd_create("freehold-box", rustix::fs::MemfdFlags::CLOEXEC)?;
        let mut file = std::fs::File::from(file);
        file.write_all(bytes)?;
        std::io::Seek::rewind(&mut file)?;
        Ok(self.inherit(file.into()))
    }
}

/// Returns `path` with all symbolic links resolved.
pub(in crate::sandbox) fn canonical(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}
