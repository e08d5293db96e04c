//! Tables, and the link to the next page of a list. On a narrow screen each cell names its column.

use maud::{Markup, Render, html};

use crate::notice::empty;

/// A table with a caption. The first cell of a row is its header.
#[derive(Debug)]
pub struct Table {
    caption: &'static str,
    columns: Vec<&'static str>,
    rows: Vec<Vec<Markup>>,
}

impl Table {
    /// Returns a table without rows.
    pub fn new(caption: &'static str, columns: impl IntoIterator<Item = &'static str>) -> Self {
        Self { caption, columns: columns.into_iter().collect(), rows: Vec::new() }
    }

    /// Adds a row with a cell for each column.
    pub fn row(&mut self, cells: impl IntoIterator<Item = Markup>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Returns whether the table has no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Returns the table, or `otherwise` if it has no rows.
    pub fn render_or(&self, otherwise: impl Render) -> Markup {
        if self.is_empty() { empty(otherwise) } else { self.render() }
    }

    /// Returns the table.
    pub fn render(&self) -> Markup {
        html! {
            table {
                caption { (self.caption) }
                thead { tr { @for column in &self.columns { th scope="col" { (*column) } } } }
                tbody { @for row in &self.rows { (self.row_of(row)) } }
            }
        }
    }

    fn row_of(&self, row: &[Markup]) -> Markup {
        html! {
            tr {
                @for (at, (column, cell)) in self.columns.iter().zip(row).enumerate() {
                    @if at == 0 {
                        th scope="row" data-label=(*column) { (cell) }
                    } @else {
                        td data-label=(*column) { (cell) }
                    }
                }
            }
        }
    }
}

/// Returns the link to the next page of a list; nothing on the last page. `href` is a path with its query.
pub fn pagination(next: Option<&str>) -> Markup {
    html! {
        @if let Some(href) = next {
            nav aria-label="Pages" { a rel="next" href=(href) { "Next page" } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_names_its_columns_in_each_cell() {
        let mut table = Table::new("Installs", ["Install", "State"]);
        table.row([html! { "globex" }, html! { "ready" }]);

        assert_eq!(
            table.render().into_string(),
            "<table><caption>Installs</caption><thead><tr><th scope=\"col\">Install</th><th scope=\"col\">State</th></tr>\
             </thead><tbody><tr><th scope=\"row\" data-label=\"Install\">globex</th><td data-label=\"State\">ready</td>\
             </tr></tbody></table>"
        );
    }

    #[test]
    fn an_empty_table_says_how_to_fill_it() {
        let table = Table::new("Apps", ["App"]);

        let rendered = table.render_or("run `freehold app sync`").into_string();

        assert_eq!(rendered, "<p class=\"empty\">run `freehold app sync`</p>");
        assert!(pagination(None).into_string().is_empty());
        assert!(pagination(Some("/apps?after=b")).into_string().contains("href=\"/apps?after=b\""));
    }
}
