//! The log, on standard error.

use crate::cli::LogFormat;
use anyhow::anyhow;
use std::io::IsTerminal as _;
use tracing_subscriber::EnvFilter;

/// Names what is logged, as `tracing` filters are written.
const VARIABLE: &str = "NEAP_LOG";
const DEFAULT: &str = "info";

pub(super) fn start(format: LogFormat) -> anyhow::Result<()> {
    let filter = EnvFilter::try_from_env(VARIABLE).unwrap_or_else(|_| EnvFilter::new(DEFAULT));
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_target(false);
    let started = match format {
        LogFormat::Text => log.with_ansi(std::io::stderr().is_terminal()).try_init(),
        LogFormat::Json => log.json().flatten_event(true).try_init(),
    };
    started.map_err(|error| anyhow!(error))
}
