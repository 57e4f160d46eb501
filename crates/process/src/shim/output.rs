//! From the child's output to its log. A pipe lies between, so that the log is
//! bounded however fast the child writes, and no line is lost when it is turned.

use super::{StepError, failed};
use crate::log::LogFile;
use crate::spec::ProcessSpec;
use rustix::fd::OwnedFd;
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::pipe::PipeFlags;
use std::io;

/// What is read at once.
const CHUNK: usize = 16 * 1024;

/// What an ended child may have left in the pipe: the most that the kernel
/// lets anybody but root put there. A grandchild may go on writing for ever.
const REST: usize = 1024 * 1024;

/// Both ends of what the child says.
pub(super) struct Output {
    pub(super) stdout: OwnedFd,
    pub(super) stderr: OwnedFd,
    pub(super) reader: OutputReader,
}

/// The shim's end.
#[derive(Debug)]
pub(super) struct OutputReader {
    /// `None` once nobody can write any more.
    pipe: Option<OwnedFd>,
    log: LogFile,
    chunk: Box<[u8]>,
}

impl Output {
    pub(super) fn prepare(spec: &ProcessSpec) -> Result<Self, StepError> {
        let log = LogFile::open(&spec.log, spec.log_limit)
            .map_err(failed(format!("open {}", spec.log)))?;
        let ends = || {
            let (read, write) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
            // The child's end stays as programs expect it.
            rustix::fs::fcntl_setfl(&read, OFlags::NONBLOCK)?;
            Ok((read, rustix::io::fcntl_dupfd_cloexec(&write, 3)?, write))
        };
        let (read, stdout, stderr) =
            ends().map_err(failed::<Errno>("make a pipe for the output"))?;
        Ok(Self {
            stdout,
            stderr,
            reader: OutputReader {
                pipe: Some(read),
                log,
                chunk: vec![0; CHUNK].into(),
            },
        })
    }
}

impl OutputReader {
    /// Readable when there is output.
    pub(super) fn descriptor(&self) -> Option<&OwnedFd> {
        self.pipe.as_ref()
    }

    /// Puts what is there into the log, one chunk at the most; how much it was.
    pub(super) fn take(&mut self) -> usize {
        let Some(pipe) = &self.pipe else { return 0 };
        match rustix::io::read(pipe, &mut *self.chunk) {
            Ok(0) => {
                self.pipe = None;
                0
            }
            Ok(length) => {
                let output = self.chunk.get(..length).unwrap_or_default();
                // The child must never wait for a full disk.
                let _: io::Result<()> = self.log.append(output);
                length
            }
            Err(Errno::AGAIN | Errno::INTR) => 0,
            Err(_) => {
                self.pipe = None;
                0
            }
        }
    }

    /// Takes what an ended child has left.
    pub(super) fn take_rest(&mut self) {
        let mut taken = 0;
        while taken < REST {
            match self.take() {
                0 => break,
                length => taken += length,
            }
        }
    }
}
