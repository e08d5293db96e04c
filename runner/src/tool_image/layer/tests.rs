//! Hostile layers, and layers one over the other.

use std::os::unix::fs::PermissionsExt as _;

use tar::{Builder, Header};

use super::*;

const TAR: &str = "application/vnd.oci.image.layer.v1.tar";

type Entries<'a> = &'a [(EntryType, &'a str, &'a str)];

/// Unpacks layers whose entries have a kind, a path, and the target of a link or the content of a file.
fn unpack_all(directory: &Path, layers: &[Entries<'_>]) -> Result<PathBuf, LayerError> {
    let root = directory.join("state/root");
    let _ = files::remove_tree(&root);
    std::fs::create_dir_all(&root).unwrap();
    let layers: Vec<Layer> = layers
        .iter()
        .enumerate()
        .map(|(number, entries)| {
            let file = directory.join(format!("layer-{number}"));
            std::fs::write(&file, tar(entries)).unwrap();
            Layer { file, media_type: TAR.to_owned() }
        })
        .collect();
    unpack(&layers, &root, || true).map(|()| root)
}

fn tar(entries: Entries<'_>) -> Vec<u8> {
    let mut tar = Builder::new(Vec::new());
    for (kind, path, text) in entries {
        let mut header = Header::new_gnu();
        let body = if *kind == EntryType::Regular { text.as_bytes() } else { b"" };
        header.set_entry_type(*kind);
        header.set_size(body.len() as u64);
        header.set_mode(if path.ends_with("sh") { 0o4755 } else { 0o600 });
        // The test writes the bytes itself: the library refuses to make such archives.
        header.as_mut_bytes()[..path.len()].copy_from_slice(path.as_bytes());
        if *kind != EntryType::Regular {
            header.as_mut_bytes()[157..157 + text.len()].copy_from_slice(text.as_bytes());
        }
        header.set_cksum();
        tar.append(&header, body).unwrap();
    }
    tar.into_inner().unwrap()
}

const FILE: EntryType = EntryType::Regular;
const DIR: EntryType = EntryType::Directory;
const LINK: EntryType = EntryType::Symlink;
const HARD: EntryType = EntryType::Link;

fn read(root: &Path, path: &str) -> Option<String> {
    std::fs::read_to_string(root.join(path)).ok()
}

#[test]
fn a_layer_replaces_adds_and_removes_what_is_below() {
    let directory = tempfile::tempdir().unwrap();
    let below: Entries<'_> = &[
        (DIR, "./", ""),
        (DIR, "./usr", ""),
        (FILE, "./usr/bin/sh", "one"),
        (HARD, "usr/bin/bash", "/usr/bin/sh"),
        (LINK, "bin", "usr/bin"),
        (FILE, "etc/gone", "x"),
        (FILE, "etc/stays", "x"),
        (FILE, "opt/a/b", "x"),
        (FILE, "var/file", "x"),
        (EntryType::Char, "dev/null", ""),
    ];
    let above: Entries<'_> = &[
        // Through the link of the layer below.
        (FILE, "bin/new.sh", "two"),
        (FILE, "usr/bin/sh", "other"),
        (FILE, "etc/.wh.gone", ""),
        // The whole directory is new, although its new file comes first.
        (FILE, "opt/a/c", "new"),
        (FILE, "opt/a/.wh..wh..opq", ""),
        (FILE, "no/such/.wh.file", ""),
        (DIR, "var/file", ""),
        (FILE, "var/file/inside", "x"),
    ];

    let root = unpack_all(directory.path(), &[below, above]).unwrap();

    assert_eq!(read(&root, "usr/bin/new.sh").as_deref(), Some("two"));
    // A hard link is a file of its own when the other name gets another file.
    assert_eq!(
        (read(&root, "usr/bin/sh").unwrap(), read(&root, "usr/bin/bash").unwrap()),
        ("other".into(), "one".into())
    );
    assert!(read(&root, "etc/gone").is_none() && read(&root, "etc/stays").is_some());
    assert!(
        read(&root, "opt/a/b").is_none()
            && read(&root, "opt/a/c").is_some()
            && read(&root, "var/file/inside").is_some()
    );
    assert!(!root.join("dev").exists() && !root.join("etc/.wh.gone").exists());
    let mode = |path: &str| root.join(path).metadata().unwrap().permissions().mode() & 0o7777;
    assert_eq!((mode("usr/bin/sh"), mode("etc/stays")), (0o755, 0o644), "nothing is set-uid or closed");
}

#[test]
fn nothing_is_written_or_removed_outside() {
    let directory = tempfile::tempdir().unwrap();
    let outside = directory.path().join("state/outside");
    std::fs::create_dir(directory.path().join("state")).unwrap();
    std::fs::write(&outside, "kept").unwrap();
    let (up, absolute) = ("../../state", outside.parent().unwrap().display().to_string());
    let refused: [&[Entries<'_>]; 9] = [
        &[&[(FILE, "../outside", "x")]],
        &[&[(FILE, "a/../../outside", "x")]],
        &[&[(HARD, "a", "../outside")]],
        &[&[(HARD, "a", "outside")]],
        &[&[(LINK, "up", up), (HARD, "a", "up/outside")]],
        &[&[(FILE, "a", "x")], &[(FILE, ".wh...", "")]],
        &[&[(FILE, "a", "x")], &[(FILE, ".wh..", "")]],
        &[&[(EntryType::Block, "disk", "")]],
        &[&[(EntryType::Fifo, "pipe", "")]],
    ];
    let harmless: [&[Entries<'_>]; 4] = [
        &[&[(LINK, "up", up)], &[(FILE, "up/outside", "x"), (FILE, "up/.wh.outside", "")]],
        &[&[(LINK, "up", &absolute)], &[(FILE, "up/outside", "x")]],
        &[&[(LINK, "up", up)], &[(FILE, "up/.wh..wh..opq", "")]],
        &[&[(LINK, "outside", "../outside")], &[(FILE, "outside", "x")]],
    ];

    for attack in refused {
        assert!(unpack_all(directory.path(), attack).is_err(), "{attack:?}");
        assert_eq!(std::fs::read_to_string(&outside).unwrap(), "kept", "{attack:?}");
    }
    for attack in harmless {
        unpack_all(directory.path(), attack).unwrap();
        assert_eq!(std::fs::read_to_string(&outside).unwrap(), "kept", "{attack:?}");
    }
}

#[test]
fn a_layer_of_another_kind_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("layer");
    std::fs::write(&file, "hello").unwrap();
    let tried = |media_type: &str| {
        let layer = Layer { file: file.clone(), media_type: media_type.to_owned() };
        unpack(&[layer], &directory.path().join("root"), || true).unwrap_err().to_string()
    };

    assert!(tried("application/vnd.oci.image.layer.v1.tar+zstd").contains("packed by gzip"));
    assert_eq!(tried("application/vnd.oci.image.layer.v1.tar+gzip"), "the layer cannot be unpacked");
}

#[test]
fn an_image_without_end_is_refused() {
    let mut left = Budget { bytes: 2000, entries: 10 };
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("layer");
    std::fs::write(&file, tar(&[(FILE, "a", &"x".repeat(4000))])).unwrap();
    let layer = Layer { file, media_type: TAR.to_owned() };

    let tried = for_each(&layer, &mut left, |entry, path| write(directory.path(), entry, path, &mut 10));

    assert!(matches!(tried, Err(LayerError::TooLarge)));
}

/// Writes one layer of `bytes`, and returns what comes of reading it with at most `most` bytes and `directories`.
fn tried(bytes: &[u8], most: u64, mut directories: u64) -> Result<(), LayerError> {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("layer");
    std::fs::write(&file, bytes).unwrap();
    let layer = Layer { file, media_type: TAR.to_owned() };
    let mut left = Budget { bytes: most, entries: 10 };
    let root = directory.path().join("root");
    std::fs::create_dir(&root).unwrap();
    for_each(&layer, &mut left, |entry, path| write(&root, entry, path, &mut directories))
}

fn header(kind: EntryType, size: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_size(size);
    header.set_mode(0o644);
    header.set_path("a").unwrap();
    header.set_cksum();
    header
}

#[test]
fn a_header_that_would_fill_the_memory_is_refused_and_a_long_name_is_not() {
    for kind in [EntryType::XHeader, EntryType::GNULongName, EntryType::GNULongLink] {
        let mut tar = Builder::new(Vec::new());
        let long = vec![b'a'; 8 << 20];
        tar.append(&header(kind, long.len() as u64), long.as_slice()).unwrap();
        tar.append(&header(FILE, 0), io::empty()).unwrap();
        let found = tried(&tar.into_inner().unwrap(), MAX_BYTES, 10);
        assert!(matches!(found, Err(LayerError::LongHeader)), "{kind:?}: {found:?}");
    }
    let mut tar = Builder::new(Vec::new());
    for name in ["long/".repeat(100) + "a", "long/".repeat(100) + "b"] {
        tar.append_data(&mut header(FILE, 2 << 20), name, vec![b'x'; 2 << 20].as_slice()).unwrap();
    }
    tried(&tar.into_inner().unwrap(), MAX_BYTES, 100).unwrap();
}

#[test]
fn a_small_layer_makes_no_large_sparse_file() {
    let mut header = header(EntryType::GNUSparse, 0);
    let gnu = header.as_gnu_mut().unwrap();
    gnu.realsize[..11].copy_from_slice(b"00077777777");
    gnu.sparse[0].offset[..11].copy_from_slice(b"00077777777");
    gnu.sparse[0].numbytes[..11].copy_from_slice(b"00000000000");
    header.set_cksum();
    let mut tar = Builder::new(Vec::new());
    tar.append(&header, io::empty()).unwrap();

    let found = tried(&tar.into_inner().unwrap(), 1 << 20, 10);

    assert!(matches!(found, Err(LayerError::TooLarge)), "{found:?}");
}

#[test]
fn a_few_paths_make_no_million_directories() {
    let deep = |name: &str| format!("{name}/{}", "d/".repeat(40));
    let layer = tar(&[(FILE, &(deep("one") + "x"), ""), (FILE, &(deep("two") + "x"), "")]);

    assert!(matches!(tried(&layer, MAX_BYTES, 60), Err(LayerError::TooLarge)));
    tried(&layer, MAX_BYTES, 82).unwrap();
}

#[test]
fn unpacking_ends_when_nobody_waits_for_the_image() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("layer");
    std::fs::write(&file, tar(&[(FILE, "a", "x"), (FILE, "b", "x")])).unwrap();
    let layer = Layer { file, media_type: TAR.to_owned() };
    let root = directory.path().join("root");
    std::fs::create_dir(&root).unwrap();

    let ended = unpack(&[layer], &root, || !root.join("a").exists());

    assert!(matches!(ended, Err(LayerError::NotWanted)));
    assert!(!root.join("b").exists());
}
