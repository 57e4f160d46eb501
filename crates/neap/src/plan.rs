//! `neap plan`: which machines manifests would need, from files alone. It
//! shows what `neap-core` plans; it decides nothing.

mod class;
mod manifest;
mod report;

use crate::cli::{Global, PlanArgs};
use crate::output::{Format, encode, print};
use crate::problem::Problem;
use anyhow::Context as _;
use camino::Utf8Path;
use neap_core::fit::shape::{Observed, PodGroup};
use neap_core::fit::{plan, runs_on};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::io::Read as _;

/// One document of a file, and where it stands.
#[derive(Debug)]
pub(crate) struct Document {
    /// File and number, for messages; empty documents are not counted.
    place: String,
    value: Value,
}

impl Document {
    /// What is wrong with it, as an error that ends the program.
    fn refuse(&self, why: impl std::fmt::Display) -> anyhow::Error {
        let named = self.text("/kind").zip(self.text("/metadata/name"));
        let named = named.map_or_else(String::new, |(kind, name)| format!(" ({kind} {name})"));
        let message = format!("{}{named}: {why}", self.place);
        Problem::Usage { message }.into()
    }

    /// Reads a part of it; an error names the field.
    fn read<T: DeserializeOwned>(&self, value: Value, path: &str) -> anyhow::Result<T> {
        serde_path_to_error::deserialize(value).map_err(|error| {
            let inner = error.path().to_string();
            let below = if inner == "." { "" } else { inner.as_str() };
            let dot = if path.is_empty() || below.is_empty() {
                ""
            } else {
                "."
            };
            let field = format!("{path}{dot}{below}");
            let colon = if field.is_empty() { "" } else { ": " };
            self.refuse(format!("{field}{colon}{}", error.inner()))
        })
    }

    fn text(&self, pointer: &str) -> Option<&str> {
        self.value.pointer(pointer).and_then(Value::as_str)
    }

    /// Its parts, if it is a list of others.
    fn items(self) -> Vec<Self> {
        let is_list = self
            .text("/kind")
            .is_some_and(|kind| kind.ends_with("List"));
        match self.value.get("items") {
            Some(Value::Array(items)) if is_list => {
                let item = |(at, value): (usize, &Value)| Self {
                    place: format!("{}, item {}", self.place, at + 1),
                    value: value.clone(),
                };
                items.iter().enumerate().map(item).collect()
            }
            _ => vec![self],
        }
    }
}

/// All documents of a file; `-` is the standard input.
fn documents(path: &Utf8Path) -> anyhow::Result<Vec<Document>> {
    let text = if path == "-" {
        let mut text = String::new();
        std::io::stdin()
            .read_to_string(&mut text)
            .context("failed to read the standard input")?;
        text
    } else {
        std::fs::read_to_string(path).with_context(|| format!("failed to read {path}"))?
    };
    documents_of(path.as_str(), &text)
}

fn documents_of(name: &str, text: &str) -> anyhow::Result<Vec<Document>> {
    let values: Vec<Value> = serde_saphyr::from_multiple(text).map_err(|error| Problem::Usage {
        message: format!("{name} is no YAML: {error}"),
    })?;
    let numbered = values.into_iter().enumerate();
    Ok(numbered
        .filter(|(_, value)| !value.is_null())
        .map(|(at, value)| Document {
            place: format!("{name}, document {}", at + 1),
            value,
        })
        .flat_map(Document::items)
        .collect())
}

pub(crate) fn plan_files(global: &Global, args: &PlanArgs) -> anyhow::Result<()> {
    let mut manifests = Vec::new();
    for file in &args.files {
        manifests.extend(documents(file)?);
    }
    let mut classes = Vec::new();
    for file in &args.classes {
        classes.extend(documents(file)?);
    }
    let report = report_of(&manifests, &classes)?;
    match global.output {
        Format::Json | Format::Yaml => print(&encode(&report, global.output)?),
        Format::Table | Format::Wide | Format::Name => print(&report.text()),
    }
}

fn report_of(manifests: &[Document], classes: &[Document]) -> anyhow::Result<report::Report> {
    let work = manifest::read(manifests)?;
    let mut classes = class::read(classes)?;
    for class in &mut classes {
        let daemons = work.daemons.iter();
        let baseline = daemons
            .filter(|daemon| runs_on(&daemon.shape, class))
            .cloned();
        class.baseline = baseline.collect();
    }
    let observed = Observed {
        pods: work
            .workloads
            .iter()
            .map(|workload| PodGroup {
                shape: workload.shape.clone(),
                count: workload.count,
            })
            .collect(),
        classes,
        namespaces: work.namespaces,
        ..Observed::default()
    };
    let plan = plan(&observed);
    Ok(report::report(
        &observed,
        &work.workloads,
        work.ignored,
        &plan,
    ))
}

#[cfg(test)]
#[path = "plan/tests.rs"]
mod tests;
