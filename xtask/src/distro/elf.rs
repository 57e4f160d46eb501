//! Which shared libraries a program needs: as much of ELF as that takes.

use std::collections::BTreeSet;

/// What a program or a library names in its header.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Needs {
    /// The loader, as an absolute path.
    pub(super) interpreter: Option<String>,
    pub(super) libraries: BTreeSet<String>,
}

const PT_LOAD: u64 = 1;
const PT_DYNAMIC: u64 = 2;
const PT_INTERP: u64 = 3;
const DT_NULL: u64 = 0;
const DT_NEEDED: u64 = 1;
const DT_STRTAB: u64 = 5;

struct Segment {
    kind: u64,
    offset: u64,
    address: u64,
    size: u64,
}

/// Reads the needs of a 64-bit little-endian ELF file; nothing for a file
/// that is none, or that lies about itself.
pub(super) fn needs(file: &[u8]) -> Option<Needs> {
    if file.get(..6)? != b"\x7fELF\x02\x01" {
        return None;
    }
    let table = number(file, 32, 8)?;
    let entry_size = number(file, 54, 2)?;
    let count = number(file, 56, 2)?;
    let segments: Vec<Segment> = (0..count)
        .map(|index| {
            let at = table.checked_add(index.checked_mul(entry_size)?)?;
            Some(Segment {
                kind: number(file, at, 4)?,
                offset: number(file, at.checked_add(8)?, 8)?,
                address: number(file, at.checked_add(16)?, 8)?,
                size: number(file, at.checked_add(32)?, 8)?,
            })
        })
        .collect::<Option<_>>()?;

    let mut needs = Needs::default();
    if let Some(segment) = segments.iter().find(|s| s.kind == PT_INTERP) {
        needs.interpreter = Some(text(file, segment.offset)?);
    }
    let Some(dynamic) = segments.iter().find(|s| s.kind == PT_DYNAMIC) else {
        return Some(needs);
    };
    let entries = entries(file, dynamic)?;
    let Some(&(_, strings)) = entries.iter().find(|(tag, _)| *tag == DT_STRTAB) else {
        return Some(needs);
    };
    let strings = file_offset(&segments, strings)?;
    for (_, name) in entries.iter().filter(|(tag, _)| *tag == DT_NEEDED) {
        needs
            .libraries
            .insert(text(file, strings.checked_add(*name)?)?);
    }
    Some(needs)
}

fn entries(file: &[u8], dynamic: &Segment) -> Option<Vec<(u64, u64)>> {
    let mut entries = Vec::new();
    for index in 0..dynamic.size / 16 {
        let at = dynamic.offset.checked_add(index * 16)?;
        let tag = number(file, at, 8)?;
        if tag == DT_NULL {
            break;
        }
        entries.push((tag, number(file, at.checked_add(8)?, 8)?));
    }
    Some(entries)
}

fn file_offset(segments: &[Segment], address: u64) -> Option<u64> {
    segments
        .iter()
        .filter(|segment| segment.kind == PT_LOAD)
        .find_map(|segment| {
            let within = address.checked_sub(segment.address)?;
            (within < segment.size).then(|| segment.offset.checked_add(within))?
        })
}

fn number(file: &[u8], at: u64, bytes: usize) -> Option<u64> {
    let at = usize::try_from(at).ok()?;
    let field = file.get(at..at.checked_add(bytes)?)?;
    let mut value = [0; 8];
    value.get_mut(..bytes)?.copy_from_slice(field);
    Some(u64::from_le_bytes(value))
}

fn text(file: &[u8], at: u64) -> Option<String> {
    let rest = file.get(usize::try_from(at).ok()?..)?;
    let end = rest.iter().position(|&byte| byte == 0)?;
    String::from_utf8(rest.get(..end)?.to_vec()).ok()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn this_program_needs_libc_and_a_loader() {
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let needs = needs(&own).unwrap();
        assert!(needs.libraries.contains("libc.so.6"), "{needs:?}");
        assert!(needs.interpreter.unwrap().starts_with("/lib"));
    }

    #[test]
    fn a_script_and_a_cut_program_need_nothing() {
        assert_eq!(needs(b"#!/bin/sh\n"), None);
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        for length in [0, 5, 6, 40, 64, 200] {
            assert_eq!(needs(own.get(..length).unwrap()), None, "{length}");
        }
    }
}
