#![expect(clippy::unwrap_used, reason = "tests")]

use super::value::LABEL_MAX;
use super::*;
use clap::CommandFactory as _;

fn parse(line: &str) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(line.split(' '))
}

fn create(line: &str) -> CreateArgs {
    match parse(line).unwrap().command {
        Command::Cluster(ClusterCommand::Create(args)) => *args,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_parser_is_consistent() {
    Cli::command().debug_assert();
}

#[test]
fn every_visible_command_is_in_the_help() {
    let help = Cli::command().render_help().to_string();
    for group in Cli::command()
        .get_subcommands()
        .filter(|command| !command.is_hide_set())
    {
        let nested: Vec<&str> = group
            .get_subcommands()
            .filter(|c| !c.is_hide_set())
            .map(|c| c.get_name())
            .collect();
        let rows = if nested.is_empty() || group.get_name() == "why" {
            vec![format!("\n  {} ", group.get_name())]
        } else {
            nested
                .iter()
                .map(|name| format!("\n  {} {name} ", group.get_name()))
                .collect()
        };
        for row in rows {
            assert!(help.contains(&row), "{row:?} is not in\n{help}");
        }
    }
}

#[test]
fn the_help_has_examples_and_exit_codes() {
    let help = Cli::command().render_help().to_string();
    for part in [
        "Clusters:",
        "This host:",
        "Options:",
        "Examples:",
        "Exit codes:",
        "\n  130  interrupted",
        "-n, --account <ACCOUNT>",
    ] {
        assert!(help.contains(part), "{part:?} is not in\n{help}");
    }
}

#[test]
fn the_account_may_stand_before_or_behind() {
    for line in [
        "neap -n team cluster list",
        "neap cluster list -n team",
        "neap cluster -n team list",
    ] {
        assert_eq!(parse(line).unwrap().global.account, "team", "{line}");
    }
    assert_eq!(
        parse("neap cluster list").unwrap().global.account,
        "default"
    );
}

#[test]
fn a_hold_is_checked_and_kept_as_written() {
    assert_eq!(
        create("neap cluster create x --hold 1m30s").hold.as_deref(),
        Some("1m30s")
    );
    let error = parse("neap cluster create x --hold soon").unwrap_err();
    assert_eq!(error.exit_code(), i32::from(Exit::Usage.code()));
}

#[test]
fn creating_waits_unless_told_not_to() {
    let default = create("neap cluster create x").wait;
    assert_eq!(default.deadline(), Some(Duration::from_secs(120)));
    assert_eq!(
        create("neap cluster create x --no-wait").wait.deadline(),
        None
    );
    assert_eq!(
        create("neap cluster create x --no-wait --wait")
            .wait
            .deadline(),
        Some(Duration::from_secs(120))
    );
    assert_eq!(
        create("neap cluster create x --timeout 5s").wait.deadline(),
        Some(Duration::from_secs(5))
    );
}

#[test]
fn a_credential_is_of_one_thing() {
    assert!(parse("neap credential --hub").is_ok());
    assert!(parse("neap credential --cluster x --account team").is_ok());
    assert!(parse("neap credential").is_err());
    assert!(parse("neap credential --hub --cluster x").is_err());
}

#[test]
fn a_command_is_needed() {
    let error = parse("neap").unwrap_err();
    assert_eq!(error.exit_code(), 2);
    assert!(parse("neap cluster").is_err());
}

#[test]
fn what_is_no_label_reaches_no_url_and_no_file() {
    for name in [
        "",
        "..",
        "a/b",
        "ci?x",
        "a b",
        "-a",
        "a-",
        "A",
        "\u{1b}[2J",
        "a\n",
    ] {
        for line in [
            ["neap", "cluster", "create", "--", name],
            ["neap", "cluster", "delete", "--", name],
            ["neap", "machine", "get", "--", name],
            ["neap", "cluster", "list", "-n", name],
            ["neap", "machine", "list", "--cluster", name],
            ["neap", "credential", "--hub", "-n", name],
        ] {
            assert!(Cli::try_parse_from(line).is_err(), "{line:?}");
        }
    }
    assert!(parse("neap cluster get ci-2").is_ok());
    let longest = "x".repeat(LABEL_MAX);
    assert!(parse(&format!("neap cluster get {longest}")).is_ok());
    assert!(parse(&format!("neap cluster get {longest}x")).is_err());
}

#[test]
fn a_name_that_is_too_long_for_a_cluster_is_refused_with_its_limit() {
    let longest = "x".repeat(40);
    assert_eq!(
        create(&format!("neap cluster create {longest}")).name,
        longest
    );
    let error = parse(&format!("neap cluster create {longest}x")).unwrap_err();
    assert!(
        error.to_string().contains("at most 40 characters"),
        "{error}"
    );
}

#[test]
fn a_version_is_a_minor_version() {
    let args = create("neap cluster create x --kube-version 1.37");
    assert_eq!(args.kube_version.as_deref(), Some("1.37"));
    for version in ["1.37.2", "v1.37", "1.", "2.0", "latest"] {
        parse(&format!("neap cluster create x --kube-version {version}")).unwrap_err();
    }
}
