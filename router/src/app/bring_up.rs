//! From a bound port to a served model: the control channel, the model's files, the shards, warm-up, the engine. Each
//! step says what it waits for, and `/health` shows it.

use std::future::pending;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use text_generation_protocol::config::RouterConfig;
use text_generation_protocol::control::PreparedModel;
use tokio::sync::watch;
use tokio::task::JoinError;

use super::AppError;
use super::control::Control;
use crate::chat::{ChatTemplate, Replacement};
use crate::drain::Cause;
use crate::engine::{self, Engine, EngineLimits, EngineSetup, Geometry, SamplingRules};
use crate::http::{ModelCard, Readiness, Serving};
use crate::model::ModelConfig;
use crate::queue::{Admission, Prompts};
use crate::shard::{ShardError, ShardGroup};
use crate::telemetry::Metrics;
use crate::text::{EncodePool, Tokenizer};

/// What to do when the shards cannot be used.
const SHARD_HINT: &str = "Look at the logs of the shards for the cause, and start the server again.";

/// How often the shards are asked for their health, and how long they may take to answer.
const HEALTH_PERIOD: Duration = Duration::from_secs(2);
const HEALTH_PATIENCE: Duration = Duration::from_secs(5);

/// A step that runs for longer is taken for one that never ends. Far above what the slowest device needs.
const LONGEST_STEP: Duration = Duration::from_secs(120);

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
        start(config, &model, readiness).await?;
        pending::<Result<Cause, AppError>>().await
    };
    tokio::select! {
        ended = closed => ended.map(|()| Cause::LauncherGone),
        outcome = serve => outcome,
    }
}

/// Makes the router ready, and returns when the engine has ended.
async fn start(
    config: &RouterConfig,
    model: &PreparedModel,
    readiness: &watch::Sender<Readiness>,
) -> Result<(), AppError> {
    let waiting = |reason: String| wait_for(readiness, reason);
    waiting("loading the tokenizer".into());
    let replacement =
        Replacement { tokenizer_config: config.tokenizer_config_path.clone(), template: config.chat_template.clone() };
    let files = load(model, replacement).await?;
    let group = connect(config, waiting).await?;
    waiting("warming up the shards".into());
    let (limits, geometry) = warm_up(config, &files, &group).await?;
    let metrics = Metrics::new(&limits)
        .map_err(|error| AppError::new(format!("the metrics cannot be set up: {error}"), "This is a defect."))?;
    let metrics = Arc::new(metrics);
    // The model cannot produce an id beyond its vocabulary, whatever its files name as an end token.
    let can_come = |id: &u32| *id < group.info().vocab_size;
    let eos_token_ids = files.config.eos_token_ids.iter().copied().filter(can_come).collect();
    let setup = EngineSetup {
        limits,
        geometry,
        tokenizer: files.tokenizer.clone(),
        rules: SamplingRules { eos_token_ids, watermark: config.watermark },
        observer: metrics.batch.clone(),
    };
    let (plans, results) = group.open().await.map_err(unusable)?;
    let (engine, running) = engine::start(setup, plans, results);
    // On a task of its own: the thread that waits for signals is not one of the workers.
    let mut running = tokio::spawn(running);
    let serving = Arc::new(serving(config, model, files, (engine, &group), metrics));
    readiness.send_replace(Readiness::Ready(serving.clone()));
    tracing::info!(model_id = model.model_id, ?limits, "Connected");
    tokio::select! {
        outcome = &mut running => report_end(outcome, readiness),
        () = watch_health(&group, readiness, &serving) => {}
    }
    Ok(())
}

/// Shows why the engine ended. The port stays open: clients learn the cause, and whoever supervises decides.
fn report_end(outcome: Result<Result<(), ShardError>, JoinError>, readiness: &watch::Sender<Readiness>) {
    let cause = match outcome {
        Ok(Ok(())) => return,
        Ok(Err(error)) => error.to_string(),
        Err(error) => format!("the engine broke off: {error}"),
    };
    tracing::error!(cause, "the engine has stopped");
    readiness.send_replace(Readiness::Failed(cause.into()));
}

/// Says what the router waits for; a reason that lasts is logged once.
fn wait_for(readiness: &watch::Sender<Readiness>, reason: String) {
    readiness.send_if_modified(|state| {
        let known = matches!(state, Readiness::Starting(known) if **known == *reason);
        if !known {
            tracing::info!(reason, "Not ready");
            *state = Readiness::Starting(reason.into());
        }
        !known
    });
}

fn serving(
    config: &RouterConfig,
    model: &PreparedModel,
    files: ModelFiles,
    (engine, group): (Engine, &ShardGroup),
    metrics: Arc<Metrics>,
) -> Serving {
    let encoder = EncodePool::new(files.tokenizer.clone(), config.limits.validation_workers);
    let prompts = Prompts::new(encoder, files.template, group.info().vocab_size);
    let admission = Admission::new(config.limits.clone(), prompts, engine, metrics.clone());
    let card = ModelCard {
        id: model.model_id.clone(),
        sha: model.revision_sha.clone(),
        pipeline_tag: model.pipeline_tag.clone(),
    };
    Serving { admission, model: card, defaults: files.config.sampling, metrics }
}

/// Keeps readiness honest: a shard that does not answer makes the router unready, and ready again once it does.
async fn watch_health(group: &ShardGroup, readiness: &watch::Sender<Readiness>, serving: &Arc<Serving>) {
    loop {
        tokio::time::sleep(HEALTH_PERIOD).await;
        let problem = match tokio::time::timeout(HEALTH_PATIENCE, group.health(LONGEST_STEP)).await {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error.to_string()),
            Err(_) => Some(format!("a shard has not answered for {} s", HEALTH_PATIENCE.as_secs())),
        };
        readiness.send_if_modified(|state| match (&problem, &*state) {
            (Some(problem), Readiness::Ready(_)) => {
                tracing::error!(problem, "Not ready");
                *state = Readiness::Failed(problem.as_str().into());
                true
            }
            (None, Readiness::Failed(_)) => {
                tracing::info!("Ready again");
                *state = Readiness::Ready(serving.clone());
                true
            }
            _ => false,
        });
    }
}

/// Reads the model's files, off the async workers.
async fn load(model: &PreparedModel, replacement: Replacement) -> Result<ModelFiles, AppError> {
    let folder = model.folder.clone();
    let loaded = tokio::task::spawn_blocking(move || {
        let hint = format!("Check the model's files in `{}`, or fetch the model again.", folder.display());
        let tokenizer = Tokenizer::load(&folder).map_err(|error| AppError::new(error.to_string(), &*hint))?;
        let template = ChatTemplate::load(&folder, &replacement)
            .map_err(|error| AppError::new(format!("cannot use the chat template: {error}"), &*hint))?;
        let config = ModelConfig::load(&folder).map_err(|error| AppError::new(error.to_string(), &*hint))?;
        Ok(ModelFiles { tokenizer, template: template.map(Arc::new), config })
    });
    loaded.await.map_err(|error| AppError::new(format!("loading the tokenizer broke off: {error}"), "Try again."))?
}

/// Connects to every rank. Standalone, only rank 0's socket is named: it knows how many ranks there are.
async fn connect(config: &RouterConfig, waiting: impl Fn(String) + Send + Sync) -> Result<ShardGroup, AppError> {
    let sockets = match config.shard_sockets.as_slice() {
        [first] => rank_sockets(first, ShardGroup::world_size(first, &waiting).await.map_err(unusable)?)?,
        all => all.to_vec(),
    };
    ShardGroup::connect(&sockets, &waiting).await.map_err(unusable)
}

/// The sockets of all ranks from that of rank 0, whose name ends in `-0` when there are more.
fn rank_sockets(first: &Path, ranks: usize) -> Result<Vec<PathBuf>, AppError> {
    if ranks <= 1 {
        return Ok(vec![first.to_path_buf()]);
    }
    let Some(prefix) = first.to_str().and_then(|path| path.strip_suffix("-0")) else {
        let cause = format!("there are {ranks} shards, and the name of `{}` does not tell the others", first.display());
        return Err(AppError::new(cause, "Let the shards listen on sockets that end in their rank, `-0` first."));
    };
    Ok((0..ranks).map(|rank| PathBuf::from(format!("{prefix}-{rank}"))).collect())
}

/// Warms the shards up, and weighs what they can hold against the configured limits.
async fn warm_up(
    config: &RouterConfig,
    files: &ModelFiles,
    group: &ShardGroup,
) -> Result<(EngineLimits, Geometry), AppError> {
    let capacity = group.warmup(engine::warmup_request(&config.limits)).await.map_err(unfit)?;
    let limits = EngineLimits::resolve(&config.limits, group.info(), &capacity, &files.config)
        .map_err(|error| AppError::new(error.to_string(), "Without the flag the limit is found from the memory."))?;
    Ok((limits, Geometry::new(group.info(), &capacity)))
}

fn unusable(error: ShardError) -> AppError {
    AppError::new(error.to_string(), SHARD_HINT)
}

/// A shard that refuses to warm up says on a second line what to do about it.
fn unfit(error: ShardError) -> AppError {
    let text = error.to_string();
    match text.split_once('\n') {
        Some((cause, hint)) => AppError::new(cause, hint),
        None => unusable(error),
    }
}
