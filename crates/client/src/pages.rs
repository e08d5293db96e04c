//! Lists that the API returns in pages: one page after another, or all pages as one list.

use freehold_protocol::api::{ArtifactsView, InstallView, LineagePage, LogPage, Page};
use serde::de::DeserializeOwned;

use crate::call::Call;
use crate::client::Client;
use crate::error::Error;

/// An answer that is one page of a list.
pub trait Paged: DeserializeOwned {
    /// Returns the place of the next page; `None` on the last page.
    fn next_place(&self) -> Option<&str>;

    /// Adds the page that follows.
    fn append(&mut self, page: Self);
}

impl<T: DeserializeOwned> Paged for Page<T> {
    fn next_place(&self) -> Option<&str> {
        self.next.as_deref()
    }

    fn append(&mut self, page: Self) {
        self.items.extend(page.items);
        self.next = page.next;
    }
}

/// The pages have different components of one install.
impl Paged for InstallView {
    fn next_place(&self) -> Option<&str> {
        self.next.as_deref()
    }

    fn append(&mut self, page: Self) {
        self.components.extend(page.components);
        self.next = page.next;
    }
}

impl Paged for ArtifactsView {
    fn next_place(&self) -> Option<&str> {
        self.next.as_deref()
    }

    fn append(&mut self, page: Self) {
        self.artifacts.extend(page.artifacts);
        self.next = page.next;
    }
}

impl Paged for LineagePage {
    fn next_place(&self) -> Option<&str> {
        self.next.as_deref()
    }

    fn append(&mut self, page: Self) {
        self.lineage.uses.extend(page.lineage.uses);
        for made in page.lineage.builds {
            // A page about one install contains only the builds of the uses on that page.
            if !self.lineage.builds.iter().any(|known| known.app == made.app && known.build == made.build) {
                self.lineage.builds.push(made);
            }
        }
        // Only the uses within one page are sorted by time.
        self.lineage.uses.sort_by_key(|used| used.proof.at);
        self.next = page.next;
    }
}

/// The log of a job that runs ends with the first page without text. To follow it, ask again from its cursor.
impl Paged for LogPage {
    fn next_place(&self) -> Option<&str> {
        (!self.ended && !self.chunks.is_empty()).then_some(self.cursor.as_str())
    }

    fn append(&mut self, page: Self) {
        self.chunks.extend(page.chunks);
        (self.cursor, self.ended) = (page.cursor, page.ended);
    }
}

impl<P: Paged> Call<P> {
    /// Returns this call for the page that begins after `place`; an empty place is that of the first page.
    pub fn after(self, place: impl Into<String>) -> Self {
        self.starting_at(place.into())
    }

    /// Returns this call for the next page, at `place`.
    ///
    /// # Errors
    /// RepeatedPage when this is the place of the same page, because the list would never end.
    fn following(self, place: String) -> Result<Self, Error> {
        if self.place() == Some(place.as_str()) { Err(Error::RepeatedPage) } else { Ok(self.after(place)) }
    }
}

/// The pages of a list, which are read one after another.
#[derive(Debug)]
pub struct Pages<'a, P> {
    client: &'a Client,
    /// The call for the next page; `None` after the last page, and after an error.
    call: Option<Call<P>>,
}

impl<P: Paged> Pages<'_, P> {
    /// Returns the next page, or `None` after the last page.
    ///
    /// # Errors
    /// Those of [`Client::send`]; RepeatedPage when the list would never end.
    pub async fn next(&mut self) -> Result<Option<P>, Error> {
        let Some(call) = self.call.take() else { return Ok(None) };
        let page = self.client.send(&call).await?;
        self.call = page.next_place().map(|place| call.following(place.to_owned())).transpose()?;
        Ok(Some(page))
    }
}

impl Client {
    /// Returns the pages of a list, from that of `call` on.
    pub fn pages<P: Paged>(&self, call: Call<P>) -> Pages<'_, P> {
        Pages { client: self, call: Some(call) }
    }

    /// Returns a list as if it had one page: from the page of `call` to the last one.
    ///
    /// # Errors
    /// Those of [`Pages::next`].
    pub async fn all<P: Paged>(&self, call: Call<P>) -> Result<P, Error> {
        let first = self.send(&call).await?;
        self.complete(first, call).await
    }

    /// Returns the list that begins with the page `first`. `call` reads the other pages.
    ///
    /// # Errors
    /// Those of [`Pages::next`].
    pub async fn complete<P: Paged>(&self, mut first: P, mut call: Call<P>) -> Result<P, Error> {
        while let Some(place) = first.next_place().map(str::to_owned) {
            call = call.following(place)?;
            first.append(self.send(&call).await?);
        }
        Ok(first)
    }
}
