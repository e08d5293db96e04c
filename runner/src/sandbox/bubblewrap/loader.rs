//! The loader and the libraries of the runner's own program, which is the first process of every box: an image may have
//! another loader and other libraries, or none.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The program header that names the loader, `PT_INTERP` (System V ABI, "Program Header").
const INTERPRETER: u32 = 3;
/// The longest path of a loader.
const MAX_PATH: u64 = 4096;

/// The files that a program with shared libraries needs for its start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Loader {
    pub(super) program: PathBuf,
    /// Each library with the name under which it is looked for.
    pub(super) libraries: Vec<(String, PathBuf)>,
}

impl Loader {
    /// Returns the loader of `program`; `None` when the program is linked statically.
    pub(super) fn of(program: &Path) -> io::Result<Option<Self>> {
        let Some(loader) = interpreter(program)? else { return Ok(None) };
        let mut command = Command::new(&loader);
        command.arg("--list").arg(program).env_clear().stdin(Stdio::null()).stderr(Stdio::null());
        let listed = command.output()?;
        if !listed.status.success() {
            let (loader, program) = (loader.display(), program.display());
            return Err(io::Error::other(format!("`{loader} --list {program}` failed: {}", listed.status)));
        }
        let libraries = libraries(&String::from_utf8_lossy(&listed.stdout));
        Ok(Some(Self { program: loader, libraries }))
    }
}

/// Returns the libraries in lines such as `libc.so.6 => /lib64/libc.so.6 (0x00007f...)`.
fn libraries(listed: &str) -> Vec<(String, PathBuf)> {
    let library = |line: &str| {
        let (name, rest) = line.trim().split_once(" => ")?;
        let path = rest.rsplit_once(" (").map_or(rest, |(path, _)| path);
        // Only the loader itself is listed with a path before the arrow.
        (path.starts_with('/') && !name.contains('/')).then(|| (name.to_owned(), PathBuf::from(path)))
    };
    listed.lines().filter_map(library).collect()
}

/// Returns the loader that the 64-bit ELF file at `program` names.
fn interpreter(program: &Path) -> io::Result<Option<PathBuf>> {
    let mut file = File::open(program)?;
    let mut header = [0; 64];
    file.read_exact(&mut header)?;
    if !header.starts_with(b"\x7fELF\x02\x01") {
        return Err(io::Error::other(format!("`{}` is not a 64-bit program of Linux", program.display())));
    }
    let (table, size, count) = (number(&header, 32, 8), number(&header, 54, 2), number(&header, 56, 2));
    for index in 0..count {
        let mut entry = [0; 56];
        file.seek(SeekFrom::Start(table.saturating_add(index * size)))?;
        file.read_exact(&mut entry)?;
        if number(&entry, 0, 4) == u64::from(INTERPRETER) {
            let mut path = Vec::new();
            file.seek(SeekFrom::Start(number(&entry, 8, 8)))?;
            file.take(number(&entry, 32, 8).min(MAX_PATH)).read_to_end(&mut path)?;
            path.retain(|byte| *byte != 0);
            return Ok(Some(PathBuf::from(std::ffi::OsStr::from_bytes(&path))));
        }
    }
    Ok(None)
}

/// Returns the little-endian number of `size` bytes at `at`.
fn number(bytes: &[u8], at: usize, size: usize) -> u64 {
    let bytes = bytes.iter().skip(at).take(size).rev();
    bytes.fold(0, |number, byte| number << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_libraries_of_this_program_are_found() {
        let own = std::env::current_exe().unwrap();

        let loader = Loader::of(&own).unwrap().expect("a test is linked to libraries");

        assert!(loader.program.is_file(), "{loader:?}");
        assert!(loader.libraries.iter().all(|(name, path)| !name.contains('/') && path.is_file()), "{loader:?}");
        assert!(loader.libraries.iter().any(|(name, _)| name.starts_with("libc.")), "{loader:?}");
    }

    #[test]
    fn lines_without_a_file_are_left_out() {
        let text = "\tlinux-vdso.so.1 (0x1)\n\tlibm.so.6 => /lib/x/libm.so.6 (0x2)\n\tlibq.so => not found\n\t/lib64/ld.so => \
                      /usr/lib/ld.so (0x3)\n";

        assert_eq!(libraries(text), [("libm.so.6".to_owned(), PathBuf::from("/lib/x/libm.so.6"))]);
    }
}
