//! A figure: samples of one quantity, and what it should be.

use anyhow::{Context, Result};
use serde::Serialize;

/// What the median of a figure should be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Goal {
    /// The less the better.
    AtMost(f64),
}

impl Goal {
    fn is_met_by(self, value: f64) -> bool {
        match self {
            Self::AtMost(limit) => value <= limit,
        }
    }

    fn limit(self) -> f64 {
        match self {
            Self::AtMost(limit) => limit,
        }
    }
}

/// Samples of one quantity.
#[derive(Debug, Clone)]
pub(crate) struct Figure {
    name: String,
    unit: &'static str,
    goal: Option<Goal>,
    samples: Vec<f64>,
}

impl Figure {
    pub(crate) fn new(name: impl Into<String>, unit: &'static str) -> Self {
        Self {
            name: name.into(),
            unit,
            goal: None,
            samples: Vec::new(),
        }
    }

    pub(crate) fn with_goal(mut self, goal: Goal) -> Self {
        self.goal = Some(goal);
        self
    }

    pub(crate) fn add(&mut self, sample: f64) {
        self.samples.push(sample);
    }

    fn minimum(&self) -> Option<f64> {
        self.samples.iter().copied().min_by(f64::total_cmp)
    }

    /// Of an even number of samples, the mean of the two in the middle.
    fn median(&self) -> Option<f64> {
        let mut sorted = self.samples.clone();
        sorted.sort_by(f64::total_cmp);
        let upper = *sorted.get(sorted.len() / 2)?;
        let lower = *sorted.get(sorted.len().checked_sub(1)? / 2)?;
        Some(f64::midpoint(lower, upper))
    }

    fn is_met(&self) -> Option<bool> {
        Some(self.goal?.is_met_by(self.median()?))
    }

    /// One line, for programs.
    fn json(&self) -> Result<String> {
        serde_json::to_string(&Line {
            name: &self.name,
            unit: self.unit,
            minimum: self.minimum(),
            median: self.median(),
            goal: self.goal.map(Goal::limit),
            met: self.is_met(),
        })
        .with_context(|| format!("cannot write the figure {} as JSON", self.name))
    }

    fn cells(&self) -> [String; 6] {
        let number = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), show);
        let goal = |goal: Goal| format!("≤ {}", show(goal.limit()));
        let met = match self.is_met() {
            Some(true) => "yes",
            Some(false) => "no",
            None => "",
        };
        [
            self.name.clone(),
            self.unit.to_owned(),
            number(self.minimum()),
            number(self.median()),
            self.goal.map_or_else(String::new, goal),
            met.to_owned(),
        ]
    }
}

#[derive(Serialize)]
struct Line<'a> {
    name: &'a str,
    unit: &'a str,
    minimum: Option<f64>,
    median: Option<f64>,
    goal: Option<f64>,
    met: Option<bool>,
}

/// Three digits that matter, no more.
fn show(value: f64) -> String {
    match value.abs() {
        100.0.. => format!("{value:.0}"),
        10.0..100.0 => format!("{value:.1}"),
        1.0..10.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// All figures: a line of JSON each, or a table for people.
pub(crate) fn lines(figures: &[Figure], json: bool) -> Result<Vec<String>> {
    if json {
        figures.iter().map(Figure::json).collect()
    } else {
        Ok(table(figures))
    }
}

fn table(figures: &[Figure]) -> Vec<String> {
    let head = ["figure", "unit", "minimum", "median", "goal", "met"].map(str::to_owned);
    let rows: Vec<_> = std::iter::once(head)
        .chain(figures.iter().map(Figure::cells))
        .collect();
    let widths: [usize; 6] = std::array::from_fn(|column| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells
            .map(|cell| cell.chars().count())
            .max()
            .unwrap_or_default()
    });
    rows.iter().map(|row| line(row, &widths)).collect()
}

/// Words to the left, numbers to the right.
fn line(row: &[String; 6], widths: &[usize; 6]) -> String {
    let cells: Vec<_> = row
        .iter()
        .zip(widths)
        .enumerate()
        .map(|(column, (cell, width))| match column {
            0 | 1 => format!("{cell:<width$}"),
            _ => format!("{cell:>width$}"),
        })
        .collect();
    cells.join("  ").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;

    fn figure(samples: &[f64], goal: Option<Goal>) -> Figure {
        let mut figure = Figure::new("cluster ready", "s");
        figure.goal = goal;
        for sample in samples {
            figure.add(*sample);
        }
        figure
    }

    #[test]
    fn a_line_of_json_has_all_fields() {
        let figure = figure(&[3.0, 1.5, 2.0], Some(Goal::AtMost(2.0)));
        assert_eq!(
            figure.json().unwrap(),
            r#"{"name":"cluster ready","unit":"s","minimum":1.5,"median":2.0,"goal":2.0,"met":true}"#
        );
    }

    #[test]
    fn the_median_is_judged_and_not_the_best_run() {
        let figure = figure(&[1.0, 3.0], Some(Goal::AtMost(1.5)));
        assert_eq!(figure.median(), Some(2.0));
        assert_eq!(figure.is_met(), Some(false));
    }

    #[test]
    fn without_samples_or_goal_nothing_is_claimed() {
        assert_eq!(figure(&[], Some(Goal::AtMost(1.0))).is_met(), None);
        assert_eq!(figure(&[1.0], None).is_met(), None);
        let json = figure(&[], None).json().unwrap();
        assert!(json.contains(r#""median":null"#), "{json}");
    }

    #[test]
    fn a_table_lines_its_columns_up() {
        let figures = [
            figure(&[1.5], Some(Goal::AtMost(12.0))),
            Figure::new("idle", "MiB"),
        ];
        assert_eq!(
            table(&figures),
            [
                "figure         unit  minimum  median    goal  met",
                "cluster ready  s        1.50    1.50  ≤ 12.0  yes",
                "idle           MiB         –       –",
            ]
        );
    }
}
