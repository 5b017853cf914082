//! Where the children's programs are: beside the launcher when they were installed together, else on `PATH`.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::error::StartError;

/// The program of the router.
pub const ROUTER: &str = "text-generation-router";

/// The program of the shards and of the preparation.
pub const SERVER: &str = "text-generation-server";

/// Both programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Programs {
    /// File of the router.
    pub router: PathBuf,
    /// File of the shards and of the preparation.
    pub server: PathBuf,
}

// === impl Programs ===

impl Programs {
    /// Find both. `own_name` is `argv[0]`, `search` is `PATH`.
    ///
    /// # Errors
    /// One of them is nowhere.
    pub fn find(own_name: &str, search: Option<&OsStr>) -> Result<Self, StartError> {
        let find = |name| find(name, own_name, search).ok_or_else(|| missing(name));
        Ok(Self { router: find(ROUTER)?, server: find(SERVER)? })
    }
}

/// Find one program. The folder of `argv[0]` comes first: in a wheel the launcher's own executable is Python's, which
/// lies elsewhere. Then the folder of the executable, then `PATH`.
pub fn find(name: &str, own_name: &str, search: Option<&OsStr>) -> Option<PathBuf> {
    let called = Path::new(own_name).parent().filter(|folder| !folder.as_os_str().is_empty()).map(Path::to_owned);
    let executable = std::env::current_exe().ok().and_then(|file| file.parent().map(Path::to_owned));
    let listed = search.map(|list| std::env::split_paths(list).collect::<Vec<_>>()).unwrap_or_default();
    let folders = called.into_iter().chain(executable).chain(listed);
    folders.map(|folder| folder.join(name)).find(|file| is_program(file))
}

fn is_program(file: &Path) -> bool {
    file.metadata().is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

fn missing(name: &str) -> StartError {
    StartError::new(
        format!("the program `{name}` is neither beside the launcher nor on PATH"),
        "install the package `text-generation-server`, or activate the environment that has it",
    )
}
