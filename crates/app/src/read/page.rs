//! Pages of lists: a limited number of items, and not more than the response of a function can have.

use freehold_protocol::api::Page;
use freehold_protocol::limits::MAX_QUOTED_BYTES;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::list::List;
use crate::AppError;
use crate::ports::Store;
use crate::table::parse;

/// The maximum number of items on one page of most lists.
pub const PAGE_ITEMS: u32 = 50;

/// The rows of one page of a list.
pub(crate) struct Rows<T> {
    /// Each row with its place in the list.
    pub(crate) items: Vec<(String, T)>,
    /// The place after which the next page begins; `None` on the last page.
    pub(crate) next: Option<String>,
}

impl<T> Rows<T> {
    /// Returns the place after which rows have to be read if none of these rows is shown. Otherwise the next page
    /// begins after the last row that is shown, so that no token names another one.
    pub(super) fn next_shown(&mut self) -> Option<String> {
        match self.items.last() {
            None => self.next.take(),
            Some((place, _)) => {
                if self.next.is_some() {
                    self.next = Some(place.clone());
                }
                None
            }
        }
    }

    /// Returns the page with a view of each row.
    ///
    /// # Errors
    /// Internal when a view cannot be written as JSON.
    pub(super) fn map<U: Serialize>(self, view: impl Fn(T) -> U) -> Result<Page<U>, AppError> {
        let views = self.items.into_iter().map(|(place, item)| (place, view(item))).collect();
        fitting(views, self.next, Space::default())
    }
}

/// Returns the rows of one page of a list. They are in the partition `pk`.
///
/// # Errors
/// The store's errors.
pub(crate) async fn rows<T: DeserializeOwned>(
    store: &dyn Store,
    pk: &str,
    list: List,
    after: Option<&str>,
) -> Result<Rows<T>, AppError> {
    rows_at_most(store, pk, list, after, PAGE_ITEMS).await
}

/// Returns at most `most` rows of a list, as [`rows`] does.
///
/// # Errors
/// The store's errors.
pub(crate) async fn rows_at_most<T: DeserializeOwned>(
    store: &dyn Store,
    pk: &str,
    list: List,
    after: Option<&str>,
    most: u32,
) -> Result<Rows<T>, AppError> {
    let rows = store.query(pk, list.prefix(), after, most).await?;
    let next = (rows.len() == most as usize).then(|| rows.last().map(|row| row.key.sk.clone())).flatten();
    let items = rows
        .into_iter()
        .map(|row| Ok((row.key.sk.clone(), parse(&row)?.value)))
        .collect::<Result<Vec<(String, T)>, AppError>>()?;
    Ok(Rows { items, next })
}

/// The space on a page that is left for items, in bytes.
#[derive(Debug)]
pub(crate) struct Space(usize);

impl Default for Space {
    fn default() -> Self {
        Self(MAX_QUOTED_BYTES)
    }
}

impl Space {
    /// Takes the space for `item`, as far as there is some. Returns whether there was enough.
    ///
    /// # Errors
    /// Internal when the item cannot be written as JSON.
    pub(crate) fn take(&mut self, item: &impl Serialize) -> Result<bool, AppError> {
        let json = serde_json::to_vec(item)?;
        let bytes = json.len() + json.iter().filter(|byte| matches!(byte, b'"' | b'\\')).count();
        let fits = bytes <= self.0;
        self.0 = self.0.saturating_sub(bytes);
        Ok(fits)
    }
}

/// Returns a page of the views that fit into `space`, and of the first view in any case. Each view has the place of its
/// row. If all views fit, the next page begins after `next`.
///
/// # Errors
/// Internal when a view cannot be written as JSON.
pub(crate) fn fitting<T: Serialize>(
    views: Vec<(String, T)>,
    next: Option<String>,
    mut space: Space,
) -> Result<Page<T>, AppError> {
    let (mut items, mut last) = (Vec::with_capacity(views.len()), None);
    for (place, view) in views {
        if !space.take(&view)? && last.is_some() {
            return Ok(Page { items, next: last });
        }
        items.push(view);
        last = Some(place);
    }
    Ok(Page { items, next })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the page of views of these lengths, whose places are their indexes.
    fn page(lengths: &[usize], space: usize) -> (usize, Option<String>) {
        let views = lengths.iter().enumerate().map(|(at, length)| (at.to_string(), "x".repeat(*length))).collect();
        let page = fitting::<String>(views, Some("end".to_owned()), Space(space)).unwrap();
        (page.items.len(), page.next)
    }

    #[test]
    fn a_page_ends_before_the_item_that_does_not_fit() {
        // The two quotes of a text take four bytes.
        assert_eq!(page(&[6, 6, 6], 30), (3, Some("end".to_owned())));
        assert_eq!(page(&[6, 6, 6], 29), (2, Some("1".to_owned())));
        assert_eq!(page(&[], 0), (0, Some("end".to_owned())));
    }

    #[test]
    fn an_item_that_is_larger_than_a_page_is_a_page_of_its_own() {
        assert_eq!(page(&[90, 1], 10), (1, Some("0".to_owned())));
    }

    #[test]
    fn quotes_and_backslashes_count_twice_as_lambda_counts_them() {
        let mut space = Space(100);

        let fits = space.take(&"\n\"").unwrap();

        // The JSON is `"\n\""`, and in a string each of its five quotes and backslashes takes two bytes.
        assert_eq!((fits, space.0), (true, 100 - 6 - 5));
    }
}
