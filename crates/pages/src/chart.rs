//! Small charts as SVG: bars, and a line. Each has its values in words too.

use maud::{Markup, html};

const WIDTH: usize = 640;
const HEIGHT: usize = 160;

/// One value of a chart, with its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bar {
    pub name: String,
    pub value: u64,
}

/// The texts of a chart. `id` is unique on its page.
#[derive(Debug, Clone, Copy)]
pub struct Chart<'a> {
    pub id: &'a str,
    pub title: &'a str,
    /// The unit of the values, such as `USD`; empty without one.
    pub unit: &'a str,
}

/// Returns a bar for each value; nothing without values.
pub fn bars(chart: Chart<'_>, values: &[Bar]) -> Markup {
    let (heights, step) = (heights(values), WIDTH / values.len().max(1));
    let drawn = html! {
        @for (at, height) in heights.iter().enumerate() {
            rect .bar x=(at * step) y=(HEIGHT - height) width=(step.saturating_sub(2).max(1)) height=(*height) {}
        }
    };
    picture(chart, values, &drawn)
}

/// Returns a line through all values; nothing without values.
pub fn line(chart: Chart<'_>, values: &[Bar]) -> Markup {
    let step = WIDTH / values.len().saturating_sub(1).max(1);
    let points =
        heights(values).into_iter().enumerate().map(|(at, height)| format!("{},{}", at * step, HEIGHT - height));
    let points = points.collect::<Vec<_>>().join(" ");
    picture(chart, values, &html! { polyline .curve points=(points) {} })
}

fn picture(chart: Chart<'_>, values: &[Bar], drawn: &Markup) -> Markup {
    let (title, desc) = (format!("{}-title", chart.id), format!("{}-desc", chart.id));
    let words = values.iter().map(|bar| format!("{}: {} {}", bar.name, bar.value, chart.unit).trim_end().to_owned());
    let words = words.collect::<Vec<_>>().join(", ");
    html! {
        @if !values.is_empty() {
            figure {
                svg xmlns="http://www.w3.org/2000/svg" role="img" aria-labelledby={ (title) " " (desc) }
                    width=(WIDTH) height=(HEIGHT + 2) viewBox={ "0 0 " (WIDTH) " " (HEIGHT + 2) } {
                    title id=(title) { (chart.title) }
                    desc id=(desc) { (words) }
                    (drawn)
                    path .axis d={ "M0 " (HEIGHT + 1) " H" (WIDTH) } {}
                }
                figcaption { (chart.title) }
            }
        }
    }
}

/// Returns the height of each value; the largest has the height of the chart.
fn heights(values: &[Bar]) -> Vec<usize> {
    let largest = values.iter().map(|bar| bar.value).max().unwrap_or_default().max(1);
    let height = |value: u64| {
        let share = u128::from(value) * 1000 / u128::from(largest);
        usize::try_from(share).unwrap_or_default() * HEIGHT / 1000
    };
    values.iter().map(|bar| height(bar.value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHART: Chart<'_> = Chart { id: "cost", title: "Cost", unit: "USD" };

    fn values(values: &[u64]) -> Vec<Bar> {
        values.iter().enumerate().map(|(at, value)| Bar { name: format!("<{at}>"), value: *value }).collect()
    }

    #[test]
    fn the_largest_value_fills_the_chart() {
        assert_eq!(heights(&values(&[0, 5, 10])), [0, 80, 160]);
        assert_eq!(heights(&values(&[u64::MAX, 0])), [160, 0]);
        assert_eq!(heights(&values(&[0])), [0]);
    }

    #[test]
    fn the_values_are_there_in_words() {
        let picture = bars(CHART, &values(&[1, 2])).into_string();

        assert!(picture.contains("<desc id=\"cost-desc\">&lt;0&gt;: 1 USD, &lt;1&gt;: 2 USD</desc>"), "{picture}");
        assert_eq!(picture.matches("<rect").count(), 2, "{picture}");
    }

    #[test]
    fn a_line_goes_through_all_values() {
        let picture = line(CHART, &values(&[0, 2])).into_string();

        assert!(picture.contains("points=\"0,160 640,0\""), "{picture}");
        assert!(line(CHART, &[]).into_string().is_empty());
    }
}
