//! From a bound port to a served model: the control channel, the model's files, the shards, warm-up, the engine. Each
//! step says what it waits for, and `/health` shows it.

use std::future::pending;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use text_generation_protocol::config::RouterConfig;
use text_generation_protocol::control::PreparedModel;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::AppError;
use super::control::Control;
use crate::chat::ChatTemplate;
use crate::drain::Cause;
use crate::engine::{self, Engine, EngineLimits, EngineSetup, Geometry};
use crate::http::{ModelCard, Readiness, Serving};
use crate::model::ModelConfig;
use crate::queue::{Admission, Vocabulary};
use crate::shard::{ShardError, ShardGroup};
use crate::telemetry::Metrics;
use crate::text::{EncodePool, Tokenizer};

/// What to do when the shards cannot be used.
const SHARD_HINT: &str = "Look at the logs of the shards for the cause, and start the server again.";

/// The running engine.
type EngineTask = JoinHandle<Result<(), ShardError>>;

/// What the model's files hold for the router.
struct ModelFiles {
    tokenizer: Arc<Tokenizer>,
    template: Option<Arc<ChatTemplate>>,
    config: ModelConfig,
}

/// Makes the router ready and waits for a reason to end.
///
/// # Errors
/// When the model or the shards cannot be used.
pub async fn bring_up(config: &RouterConfig, readiness: &watch::Sender<Readiness>) -> Result<Cause, AppError> {
    let mut control = config.control_channel.then(Control::open);
    let model = match (&config.model, &mut control) {
        (Some(model), _) => Some(model.clone()),
        (None, Some(control)) => control.model(readiness).await?,
        (None, None) => {
            let hint = "Name one with `--tokenizer-name`, or start `text-generation-launcher`.";
            return Err(AppError::new("no model was named", hint));
        }
    };
    let Some(model) = model else { return Ok(Cause::LauncherGone) };
    let closed = async {
        match &mut control {
            Some(control) => control.closed().await,
            None => pending().await,
        }
    };
    let serve = async {
        let engine = start(config, &model, readiness).await?;
        let cause = match engine.await {
            Ok(Ok(())) => "the engine has ended".to_owned(),
            Ok(Err(error)) => error.to_string(),
            Err(error) => format!("the engine broke off: {error}"),
        };
        // The router stays to answer its clients with the cause; ending the group is the launcher's decision.
        tracing::error!(cause, "The shards cannot be used any longer");
        readiness.send_replace(Readiness::Failed(cause.into()));
        pending::<Result<Cause, AppError>>().await
    };
    tokio::select! {
        ended = closed => ended.map(|()| Cause::LauncherGone),
        outcome = serve => outcome,
    }
}

async fn start(
    config: &RouterConfig,
    model: &PreparedModel,
    readiness: &watch::Sender<Readiness>,
) -> Result<EngineTask, AppError> {
    let waiting = |reason: String| {
        tracing::info!(reason, "Not ready");
        readiness.send_replace(Readiness::Starting(reason.into()));
    };
    waiting("loading the tokenizer".into());
    let files = load(model, config.tokenizer_config_path.as_deref()).await?;
    let group = connect(config, waiting).await?;
    waiting("warming up the shards".into());
    let (engine, metrics, task) = start_engine(config, &files, &group).await?;
    let limits = engine.limits();
    let vocabulary = Vocabulary::of(&files.tokenizer, group.info().vocab_size);
    let encoder = EncodePool::new(files.tokenizer.clone(), config.limits.validation_workers);
    let admission = Admission::new(config.limits.clone(), vocabulary, encoder, files.template, engine, metrics.clone());
    let card = ModelCard {
        id: model.model_id.clone(),
        sha: model.revision_sha.clone(),
        pipeline_tag: model.pipeline_tag.clone(),
    };
    let serving =
        Serving { admission, model: card, defaults: files.config.sampling, tokenizer: files.tokenizer, metrics };
    readiness.send_replace(Readiness::Ready(Arc::new(serving)));
    tracing::info!(model_id = model.model_id, ?limits, "Connected");
    Ok(task)
}

/// Reads the model's files, off the async workers.
async fn load(model: &PreparedModel, tokenizer_config: Option<&Path>) -> Result<ModelFiles, AppError> {
    let folder = model.folder.clone();
    let tokenizer_config = tokenizer_config.map(Path::to_path_buf);
    let loaded = tokio::task::spawn_blocking(move || {
        let hint = format!("Check the model's files in `{}`, or fetch the model again.", folder.display());
        let tokenizer = Tokenizer::load(&folder).map_err(|error| AppError::new(error.to_string(), &*hint))?;
        let template = ChatTemplate::load(&folder, tokenizer_config.as_deref())
            .map_err(|error| AppError::new(format!("cannot use the chat template: {error}"), &*hint))?;
        let config = ModelConfig::load(&folder).map_err(|error| AppError::new(error.to_string(), &*hint))?;
        Ok(ModelFiles { tokenizer, template: template.map(Arc::new), config })
    });
    loaded.await.map_err(|error| AppError::new(format!("loading the tokenizer broke off: {error}"), "Try again."))?
}

/// Connects to every rank. Standalone, only rank 0's socket is named: it knows how many ranks there are.
async fn connect(config: &RouterConfig, waiting: impl Fn(String) + Send + Sync) -> Result<ShardGroup, AppError> {
    let failed = |error: ShardError| AppError::new(error.to_string(), SHARD_HINT);
    let group = ShardGroup::connect(&config.shard_sockets, &waiting).await.map_err(failed)?;
    let ranks = group.info().world_size as usize;
    if ranks == config.shard_sockets.len() {
        return Ok(group);
    }
    let sockets = rank_sockets(&config.shard_sockets, ranks)?;
    ShardGroup::connect(&sockets, &waiting).await.map_err(failed)
}

/// The sockets of all ranks from that of rank 0, whose name ends in `-0`.
fn rank_sockets(known: &[PathBuf], ranks: usize) -> Result<Vec<PathBuf>, AppError> {
    let first = known.first().and_then(|socket| socket.to_str()).unwrap_or_default();
    let Some(prefix) = first.strip_suffix("-0").filter(|_| known.len() == 1) else {
        let cause = format!("{} sockets are named and there are {ranks} shards", known.len());
        return Err(AppError::new(cause, "Name the socket of rank 0, ending in `-0`."));
    };
    Ok((0..ranks).map(|rank| PathBuf::from(format!("{prefix}-{rank}"))).collect())
}

/// Warms the shards up and starts the engine on them. The task ends when the shards fail.
async fn start_engine(
    config: &RouterConfig,
    files: &ModelFiles,
    group: &ShardGroup,
) -> Result<(Engine, Arc<Metrics>, EngineTask), AppError> {
    let failed = |error: ShardError| AppError::new(error.to_string(), SHARD_HINT);
    let capacity = group.warmup(engine::warmup_request(&config.limits)).await.map_err(failed)?;
    let limits = EngineLimits::resolve(&config.limits, group.info(), &capacity, &files.config)
        .map_err(|error| AppError::new(error.to_string(), "Change the flag, or leave it out to have it found."))?;
    let metrics = Metrics::new(&limits)
        .map_err(|error| AppError::new(format!("the metrics cannot be set up: {error}"), "This is a defect."))?;
    let setup = EngineSetup {
        limits,
        geometry: Geometry::new(group.info(), &capacity),
        tokenizer: files.tokenizer.clone(),
        eos_token_ids: files.config.eos_token_ids.clone(),
        observer: metrics.batch.clone(),
    };
    let (plans, results) = group.open().await.map_err(failed)?;
    let (engine, run) = engine::start(setup, plans, results);
    Ok((engine, Arc::new(metrics), tokio::spawn(run)))
}
