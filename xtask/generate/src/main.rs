//! Writes the files that are generated from neap's own types, and checks that
//! they are what the types say. `cargo xtask generate` and `check` call it.

use std::collections::BTreeMap;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use camino::{Utf8Path, Utf8PathBuf};
use clap::Parser;

/// Writes deploy/crds from the types of neap-api.
#[derive(Debug, Parser)]
struct Arguments {
    /// Change nothing; fail when a file is not what the types say
    #[arg(long)]
    check: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report(&error);
            ExitCode::FAILURE
        }
    }
}

#[expect(clippy::print_stderr, reason = "a tool's error report")]
fn report(error: &anyhow::Error) {
    eprintln!("error: {error:#}");
}

fn run(arguments: &Arguments) -> Result<()> {
    let folder = Utf8Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/crds");
    let wanted = crd_files()?;
    if arguments.check {
        check(&folder, &wanted)
    } else {
        write(&folder, &wanted)
    }
}

fn crd_files() -> Result<BTreeMap<String, String>> {
    neap_api::crds()
        .iter()
        .map(|crd| {
            let name = &crd.spec.names.plural;
            let yaml = serde_saphyr::to_string(crd)
                .with_context(|| format!("cannot write the definition of {name} as YAML"))?;
            let text = format!("# Written by `cargo xtask generate`.\n{yaml}");
            Ok((format!("{name}.yaml"), text))
        })
        .collect()
}

fn write(folder: &Utf8Path, wanted: &BTreeMap<String, String>) -> Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {folder}"))?;
    for stale in present(folder)?.keys().filter(|&k| !wanted.contains_key(k)) {
        let path = folder.join(stale);
        std::fs::remove_file(&path).with_context(|| format!("cannot remove {path}"))?;
    }
    for (name, text) in wanted {
        let path = folder.join(name);
        std::fs::write(&path, text).with_context(|| format!("cannot write {path}"))?;
    }
    Ok(())
}

fn check(folder: &Utf8Path, wanted: &BTreeMap<String, String>) -> Result<()> {
    let present = present(folder)?;
    let differing: Vec<_> = wanted
        .keys()
        .chain(present.keys().filter(|&name| !wanted.contains_key(name)))
        .filter(|&name| wanted.get(name) != present.get(name))
        .map(String::as_str)
        .collect();
    if differing.is_empty() {
        Ok(())
    } else {
        bail!("not as generated, in deploy/crds: {}", differing.join(", "))
    }
}

fn present(folder: &Utf8Path) -> Result<BTreeMap<String, String>> {
    let mut files = BTreeMap::new();
    if !folder.exists() {
        return Ok(files);
    }
    let entries = folder
        .read_dir_utf8()
        .with_context(|| format!("cannot list {folder}"))?;
    for entry in entries {
        let path: Utf8PathBuf = entry
            .with_context(|| format!("cannot list {folder}"))?
            .into_path();
        let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
        if let Some(name) = path.file_name() {
            files.insert(name.to_owned(), text);
        }
    }
    Ok(files)
}
