//! The program itself; all of it is in the library of the same name.

use std::process::ExitCode;

fn main() -> ExitCode {
    neap::main()
}
