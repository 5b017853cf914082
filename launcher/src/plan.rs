//! What to start, as data: the run folder, the configuration file of each child, and the command that reads it. Owns the
//! names of files in the run folder. Starts nothing.

use std::fs::{OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use serde::Serialize;
use tempfile::TempDir;
use text_generation_protocol::config::{LogConfig, PrepareConfig, RouterConfig, ShardConfig};
use text_generation_protocol::control::PreparedModel;

use crate::child::ChildSpec;
use crate::config::{LauncherConfig, SOCKET_PATH_LIMIT};
use crate::error::StartError;
use crate::event::Role;
use crate::programs::Programs;

/// The name of the demo model until the preparation says its real one.
const DEMO_NAME: &str = "demo";

/// Everything needed to start the children.
#[derive(Debug)]
pub struct Plan {
    /// The launcher's configuration.
    pub config: LauncherConfig,
    programs: Programs,
    folder: TempDir,
}

// === impl Plan ===

impl Plan {
    /// Make the run folder and check that the sockets can be there.
    ///
    /// # Errors
    /// The temporary folder is not writable, or a socket's path is too long or in use.
    pub fn new(config: LauncherConfig, programs: Programs) -> Result<Self, StartError> {
        let private = Permissions::from_mode(0o700);
        let folder = tempfile::Builder::new().prefix("text-generation-").permissions(private).tempdir();
        let folder = folder.map_err(|error| {
            StartError::new(
                format!("cannot make a folder in `{}`: {error}", std::env::temp_dir().display()),
                "set TMPDIR to a writable folder",
            )
        })?;
        let plan = Self { config, programs, folder };
        (0..plan.config.shards.count).try_for_each(|rank| free_socket(&plan.socket(rank)))?;
        Ok(plan)
    }

    /// The router, which starts first and learns of the model later.
    ///
    /// # Errors
    /// Its configuration cannot be written.
    pub fn router(&self) -> Result<ChildSpec, StartError> {
        let LauncherConfig { model, server, limits, watermark, log, .. } = &self.config;
        let name = model.served_name.as_ref().or(model.model_id.as_ref());
        let config = RouterConfig {
            hostname: server.hostname,
            port: server.port,
            model: None,
            model_id: name.cloned().unwrap_or_else(|| DEMO_NAME.to_owned()),
            shard_sockets: (0..self.config.shards.count).map(|rank| self.socket(rank)).collect(),
            tokenizer_config_path: model.tokenizer_config_path.clone(),
            chat_template: model.chat_template.clone(),
            limits: limits.clone(),
            api_key: server.api_key.clone(),
            cors_allow_origin: server.cors_allow_origin.clone(),
            graceful_termination_timeout: server.grace.as_secs(),
            compute_type: server.compute_type.clone(),
            aip_predict_route: server.aip_predict_route.clone(),
            aip_health_route: server.aip_health_route.clone(),
            control_channel: true,
            watermark: *watermark,
            log: log.clone(),
        };
        let file = self.write("router.json", &config)?;
        let arguments = vec!["--config".to_owned(), file];
        Ok(ChildSpec { role: Role::Router, program: self.programs.router.clone(), arguments, environment: Vec::new() })
    }

    /// The preparation of the model.
    ///
    /// # Errors
    /// Its configuration cannot be written.
    pub fn prepare(&self) -> Result<ChildSpec, StartError> {
        let model = &self.config.model;
        let config = PrepareConfig {
            model_id: model.model_id.clone(),
            revision: model.revision.clone(),
            num_shard: self.config.shards.count,
            load_format: model.load_format.clone(),
            huggingface_hub_cache: model.huggingface_hub_cache.clone(),
            weights_cache_override: model.weights_cache_override.clone(),
            cache_folder: model.cache_folder.clone(),
            output: self.prepared_file(),
            log: self.child_log(),
        };
        let file = self.write("prepare.json", &config)?;
        let token = model.token_from_old_name.clone().map(|token| ("HF_TOKEN", token));
        let progress_bars = ("HF_HUB_DISABLE_PROGRESS_BARS", "1".to_owned());
        Ok(self.python(Role::Prepare, "prepare", file, token.into_iter().chain([progress_bars]).collect()))
    }

    /// One shard, once the model is prepared.
    ///
    /// # Errors
    /// Its configuration cannot be written.
    pub fn shard(&self, rank: usize, model: &PreparedModel) -> Result<ChildSpec, StartError> {
        let shards = &self.config.shards;
        let meeting_file = || format!("file://{}", self.folder.path().join("rendezvous").display());
        let config = ShardConfig {
            rank,
            world_size: shards.count,
            socket: self.socket(rank),
            model_folder: model.folder.clone(),
            rendezvous: shards.rendezvous.clone().unwrap_or_else(meeting_file),
            device: shards.device.clone(),
            dtype: shards.dtype.clone(),
            load_format: self.config.model.load_format.clone(),
            attention: shards.attention.clone(),
            memory_fraction: shards.memory_fraction,
            threads: Some(shards.threads),
            rope_scaling: shards.rope.as_ref().map(|(scaling, _)| scaling.clone()),
            rope_factor: shards.rope.as_ref().map(|(_, factor)| *factor),
            log: self.child_log(),
        };
        let file = self.write(&format!("shard-{rank}.json"), &config)?;
        let mut environment = vec![("OMP_NUM_THREADS", shards.threads.to_string())];
        if shards.passive_waiting {
            environment.push(("OMP_WAIT_POLICY", "passive".to_owned()));
        }
        Ok(self.python(Role::Shard(rank), "serve", file, environment))
    }

    /// What the preparation left behind, under the name that the user wants.
    ///
    /// # Errors
    /// It ended well but left no readable result.
    pub fn prepared_model(&self) -> Result<PreparedModel, StartError> {
        let text = std::fs::read(self.prepared_file()).map_err(|error| error.to_string());
        let model = text.and_then(|text| serde_json::from_slice(&text).map_err(|error| error.to_string()));
        let mut model: PreparedModel = model.map_err(|error| {
            StartError::new(
                format!("the preparation of the model left no readable result: {error}"),
                "check that launcher and server are of the same version",
            )
        })?;
        if let Some(name) = &self.config.model.served_name {
            model.model_id.clone_from(name);
        }
        Ok(model)
    }

    fn python(
        &self,
        role: Role,
        command: &str,
        file: String,
        mut environment: Vec<(&'static str, String)>,
    ) -> ChildSpec {
        // So that nothing printed is lost when the process dies, and a crash in native code leaves a stack.
        environment.extend([("PYTHONUNBUFFERED", "1".to_owned()), ("PYTHONFAULTHANDLER", "1".to_owned())]);
        let arguments = vec![command.to_owned(), "--config".to_owned(), file];
        ChildSpec { role, program: self.programs.server.clone(), arguments, environment }
    }

    /// Python's children always log JSON: the launcher gives their lines the form that the user wants.
    fn child_log(&self) -> LogConfig {
        LogConfig { json: true, ..self.config.log.clone() }
    }

    fn prepared_file(&self) -> PathBuf {
        self.folder.path().join("prepared.json")
    }

    fn socket(&self, rank: usize) -> PathBuf {
        match &self.config.shards.socket_prefix {
            Some(prefix) => PathBuf::from(format!("{}-{rank}", prefix.display())),
            None => self.folder.path().join(format!("shard-{rank}.sock")),
        }
    }

    /// Configurations hold the API key: nobody else may read them.
    fn write(&self, name: &str, config: &impl Serialize) -> Result<String, StartError> {
        let path = self.folder.path().join(name);
        let write = || -> io::Result<()> {
            let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
            serde_json::to_writer_pretty(&file, config)?;
            file.flush()
        };
        write().map_err(|error| {
            StartError::new(
                format!("cannot write `{}`: {error}", path.display()),
                "free some space there, or set TMPDIR to another folder",
            )
        })?;
        Ok(path.to_string_lossy().into_owned())
    }
}

/// A socket path must be short enough and nobody may listen there. A dead socket of an earlier run is removed.
fn free_socket(path: &Path) -> Result<(), StartError> {
    let length = path.as_os_str().len();
    if length > SOCKET_PATH_LIMIT {
        return Err(StartError::new(
            format!("the socket path `{}` has {length} bytes; Linux takes {SOCKET_PATH_LIMIT}", path.display()),
            "set TMPDIR or `--shard-uds-path` to a shorter path",
        ));
    }
    let unusable = |why: String| {
        StartError::new(
            format!("the socket `{}` {why}", path.display()),
            "give each server its own `--shard-uds-path`, or leave the flag out",
        )
    };
    match UnixStream::connect(path) {
        Ok(_) => Err(unusable("is in use by another server".to_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(_) => std::fs::remove_file(path).map_err(|error| unusable(format!("cannot be removed: {error}"))),
    }
}
