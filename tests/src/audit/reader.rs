//! A customer who copies the bucket page by page, while machines write.

use std::sync::{Arc, Mutex, PoisonError};

use freehold_protocol::audit::verify::RecordsCopy;

use super::bucket::Store;

/// The number of names on a page of a list.
const PAGE: usize = 8;
/// How often machines may continue between two pages.
const TURNS: usize = 2;

/// Lists the folders in this order, and copies the objects that it found. An object never changes.
pub(super) async fn copy(store: Arc<Mutex<Store>>, folders: &[&str]) -> RecordsCopy {
    let mut names = Vec::new();
    for folder in folders {
        names.extend(list(&store, folder).await);
    }
    let (mut copy, store) = (RecordsCopy::default(), store.lock().unwrap_or_else(PoisonError::into_inner));
    for (name, bytes) in names.iter().filter_map(|name| Some((name, store.objects.get(name)?))) {
        copy.add(name, bytes.clone());
    }
    copy
}

async fn list(store: &Mutex<Store>, folder: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    loop {
        let found = page(store, folder, names.last());
        let is_last = found.len() < PAGE;
        names.extend(found);
        for _ in 0..TURNS {
            tokio::task::yield_now().await;
        }
        if is_last {
            return names;
        }
    }
}

/// Returns the next names in a folder; without a name, those in no folder.
fn page(store: &Mutex<Store>, folder: &str, after: Option<&String>) -> Vec<String> {
    let store = store.lock().unwrap_or_else(PoisonError::into_inner);
    let is_inside = |name: &str| match folder {
        "" => !name.contains('/'),
        folder => name.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/')),
    };
    let later = store.objects.keys().filter(|name| after.is_none_or(|after| *name > after) && is_inside(name));
    later.take(PAGE).cloned().collect()
}
