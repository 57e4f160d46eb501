//! `neap completions` and `neap man`: what shells and manuals know of the
//! command line, made from the command line itself.

use crate::cli::{Cli, CompletionsArgs, ManArgs};
use crate::output::print;
use anyhow::Context as _;
use clap::CommandFactory as _;

pub(crate) fn completions(args: CompletionsArgs) -> anyhow::Result<()> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "neap", &mut text);
    print(&String::from_utf8_lossy(&text))
}

pub(crate) fn man(args: &ManArgs) -> anyhow::Result<()> {
    let Some(folder) = &args.folder else {
        let mut text = Vec::new();
        clap_mangen::Man::new(Cli::command())
            .render(&mut text)
            .context("failed to write the manual page")?;
        return print(&String::from_utf8_lossy(&text));
    };
    std::fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(Cli::command(), folder))
        .with_context(|| format!("failed to write the manual pages into {folder}"))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use camino::Utf8Path;

    #[test]
    fn each_command_has_a_page_with_its_examples() {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(folder.path()).unwrap().join("man1");
        man(&ManArgs {
            folder: Some(path.clone()),
        })
        .unwrap();
        for name in ["neap", "neap-serve", "neap-cluster-stop", "neap-uninstall"] {
            let page = std::fs::read_to_string(path.join(format!("{name}.1"))).unwrap();
            assert!(page.contains(".SH NAME"), "{page}");
        }
        let page = std::fs::read_to_string(path.join("neap-cluster-create.1")).unwrap();
        assert!(page.contains("neap cluster create ci"), "{page}");
        assert!(page.contains("max\\-nodes"), "{page}");
    }
}
