//! From the shim to the program of the child.

use super::output::{Output, OutputReader};
use super::{StepError, failed, signals};
use crate::cgroup::Cgroup;
use crate::identity::has_ended;
use crate::spec::{Namespace, ProcessSpec};
use camino::Utf8PathBuf;
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::MountPropagationFlags;
use rustix::pipe::PipeFlags;
use rustix::process::{PidfdFlags, Signal, getpid, pidfd_open};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// A step between fork and execution.
struct Step {
    name: &'static str,
    thing: fn(&ProcessSpec) -> Option<String>,
    act: fn(&Entry) -> Result<(), Errno>,
}

/// All of them, in their order. Their numbers travel through a pipe, because
/// of an error that happens there only its errno does.
const STEPS: [Step; 6] = [
    Step {
        name: "bind the child to the shim",
        thing: |_| None,
        act: Entry::bind,
    },
    Step {
        name: "join the control group",
        thing: |spec| spec.cgroup.as_ref().map(ToString::to_string),
        act: Entry::join_cgroup,
    },
    Step {
        name: "enter the network namespace",
        thing: |spec| spec.network_namespace.as_ref().map(ToString::to_string),
        act: Entry::enter_network,
    },
    Step {
        name: "make namespaces",
        thing: |_| None,
        act: Entry::make_namespaces,
    },
    Step {
        name: "make mounts private",
        thing: |_| None,
        act: Entry::make_private,
    },
    Step {
        name: "enter the working directory",
        thing: |spec| Some(spec.working_dir.to_string()),
        act: Entry::enter_directory,
    },
];

impl Step {
    fn describe(&self, spec: &ProcessSpec) -> String {
        match (self.thing)(spec) {
            Some(thing) => format!("{} {thing}", self.name),
            None => self.name.to_owned(),
        }
    }
}

/// What the forked child needs on its way; all of it opened by the shim.
struct Entry {
    shim: OwnedFd,
    cgroups: Vec<OwnedFd>,
    network: Option<OwnedFd>,
    namespaces: UnshareFlags,
    working_dir: Utf8PathBuf,
    problem: OwnedFd,
}

/// Returns once the program runs, or with the step that failed.
pub(super) fn spawn(spec: &ProcessSpec) -> Result<(Child, OutputReader), StepError> {
    let program = spec
        .argv
        .first()
        .ok_or_else(|| failed("find the program")(io::Error::from(io::ErrorKind::InvalidInput)))?;
    let output = Output::prepare(spec)?;
    let (problem, entry) = Entry::prepare(spec)?;
    if spec.namespaces.contains(&Namespace::Pid) {
        // SAFETY: The table of descriptors stays shared with nobody; the next
        // child, and it alone, begins the new namespace.
        unsafe { unshare_unsafe(UnshareFlags::NEWPID) }
            .map_err(failed("make a process namespace"))?;
    }

    let mut command = Command::new(program);
    command
        .args(spec.argv.iter().skip(1))
        .env_clear()
        .envs(&spec.env)
        .stdin(Stdio::null())
        .stdout(output.stdout)
        .stderr(output.stderr);
    // SAFETY: The shim has one thread, so that its forked copy may do whatever
    // the shim may, memory included.
    unsafe { command.pre_exec(move || entry.enter()) };
    let spawned = command.spawn();
    // The command holds the other ends of the pipes.
    drop(command);
    let child = spawned.map_err(|error| {
        let mut number = [0_u8];
        let step = match rustix::io::read(&problem, &mut number) {
            Ok(1) => STEPS
                .get(usize::from(number[0]))
                .map(|step| step.describe(spec)),
            _ => None,
        };
        failed(step.unwrap_or_else(|| format!("execute {program}")))(error)
    })?;
    Ok((child, output.reader))
}

impl Entry {
    fn prepare(spec: &ProcessSpec) -> Result<(OwnedFd, Self), StepError> {
        let (problem, write) =
            rustix::pipe::pipe_with(PipeFlags::CLOEXEC).map_err(failed("make a pipe"))?;
        let cgroups = match &spec.cgroup {
            Some(cgroup) => Cgroup::at(cgroup)
                .open_members()
                .map_err(failed(format!("open the control group {cgroup}")))?,
            None => Vec::new(),
        };
        let network = match &spec.network_namespace {
            Some(path) => Some(
                rustix::fs::open(
                    path.as_std_path(),
                    OFlags::RDONLY | OFlags::CLOEXEC,
                    Mode::empty(),
                )
                .map_err(failed(format!("open the network namespace {path}")))?,
            ),
            None => None,
        };
        let entry = Self {
            shim: pidfd_open(getpid(), PidfdFlags::empty()).map_err(failed("open the shim"))?,
            cgroups,
            network,
            namespaces: spec
                .namespaces
                .iter()
                .map(|namespace| flag(*namespace))
                .collect(),
            working_dir: spec.working_dir.clone(),
            problem: write,
        };
        Ok((problem, entry))
    }

    fn enter(&self) -> io::Result<()> {
        for (number, step) in (0_u8..).zip(STEPS) {
            if let Err(error) = (step.act)(self) {
                let _: Result<usize, Errno> = rustix::io::write(&self.problem, &[number]);
                return Err(error.into());
            }
        }
        Ok(())
    }

    /// A session of its own, default signals, and death with the shim.
    fn bind(&self) -> Result<(), Errno> {
        signals::reset();
        rustix::process::umask(Mode::WGRP | Mode::WOTH);
        rustix::process::setsid()?;
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        // The shim may have died before; in a process namespace of its own the
        // child could not tell that by the pid of its parent.
        if has_ended(&self.shim) {
            Err(Errno::SRCH)
        } else {
            Ok(())
        }
    }

    fn join_cgroup(&self) -> Result<(), Errno> {
        for members in &self.cgroups {
            // Zero is whoever writes it.
            rustix::io::write(members, b"0")?;
        }
        Ok(())
    }

    fn enter_network(&self) -> Result<(), Errno> {
        use rustix::fd::AsFd;
        match &self.network {
            Some(network) => {
                move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network))
            }
            None => Ok(()),
        }
    }

    fn make_namespaces(&self) -> Result<(), Errno> {
        if self.namespaces.is_empty() {
            return Ok(());
        }
        // SAFETY: Descriptors stay in the one table of the only thread.
        unsafe { unshare_unsafe(self.namespaces) }
    }

    fn make_private(&self) -> Result<(), Errno> {
        if !self.namespaces.contains(UnshareFlags::NEWNS) {
            return Ok(());
        }
        let all = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
        rustix::mount::mount_change("/", all)
    }

    fn enter_directory(&self) -> Result<(), Errno> {
        rustix::process::chdir(self.working_dir.as_std_path())
    }
}

/// What the child makes for itself. The process namespace was made by the
/// shim, for it begins with a fork.
fn flag(namespace: Namespace) -> UnshareFlags {
    match namespace {
        Namespace::Mount => UnshareFlags::NEWNS,
        Namespace::Pid => UnshareFlags::empty(),
        Namespace::Uts => UnshareFlags::NEWUTS,
        Namespace::Ipc => UnshareFlags::NEWIPC,
        Namespace::Cgroup => UnshareFlags::NEWCGROUP,
    }
}
