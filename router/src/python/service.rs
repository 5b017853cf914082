//! The gRPC service of a shard, on a thread of its own, so that `Health` answers while Python computes. Translates
//! between the wire and the `Exchange`; decides nothing.

use std::os::unix::net::UnixListener as StdUnixListener;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use text_generation_protocol::v1::shard_server::{Shard, ShardServer};
use text_generation_protocol::{MAX_MESSAGE_BYTES, RECONNECT_GRACE, check, v1};
use tokio::net::UnixListener;
use tokio::sync::{mpsc, oneshot};
use tokio_stream::Stream;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::{Request, Response, Status, Streaming};

use super::exchange::Exchange;

/// How long open connections may take to end once the shard closes.
const CLOSE_GRACE: Duration = Duration::from_secs(1);

/// The service over an exchange.
pub(super) struct Service {
    exchange: Arc<Exchange>,
}

/// The results of one stream. The transport drops it when the client leaves, which ends the stream.
pub(super) struct ResultStream {
    results: mpsc::UnboundedReceiver<Result<v1::StepResult, Status>>,
    number: u64,
    exchange: Arc<Exchange>,
}

/// Serves until `shutdown` resolves (or is dropped), then lets open connections end.
pub(super) async fn serve(
    listener: StdUnixListener,
    exchange: Arc<Exchange>,
    shutdown: oneshot::Receiver<()>,
) -> Result<(), String> {
    let listener = UnixListener::from_std(listener).map_err(|error| error.to_string())?;
    let service = ShardServer::new(Service { exchange })
        .max_decoding_message_size(MAX_MESSAGE_BYTES)
        .max_encoding_message_size(MAX_MESSAGE_BYTES);
    let (closing, closed) = oneshot::channel::<()>();
    let serving = tonic::transport::Server::builder().add_service(service).serve_with_incoming_shutdown(
        UnixListenerStream::new(listener),
        async move {
            // Both an order to stop and the loss of whoever could give it mean the same.
            let _ = shutdown.await;
            let _ = closing.send(());
        },
    );
    tokio::select! {
        ended = serving => ended.map_err(|error| error.to_string()),
        () = async { let _ = closed.await; tokio::time::sleep(CLOSE_GRACE).await } => Ok(()),
    }
}

// === impl Service ===

#[tonic::async_trait]
impl Shard for Service {
    type StepsStream = ResultStream;

    async fn info(&self, _: Request<v1::InfoRequest>) -> Result<Response<v1::InfoResponse>, Status> {
        self.exchange.info().map(Response::new)
    }

    async fn warmup(&self, request: Request<v1::WarmupRequest>) -> Result<Response<v1::Capacity>, Status> {
        let capacity = match self.exchange.warmup(request.into_inner())? {
            Ok(known) => known,
            Err(answer) => answer.await.map_err(|_| Status::unavailable("the shard is closing"))??,
        };
        Ok(Response::new(capacity))
    }

    async fn steps(&self, request: Request<Streaming<v1::StepPlan>>) -> Result<Response<Self::StepsStream>, Status> {
        self.exchange.wait_for_place(RECONNECT_GRACE).await;
        let (sender, results) = mpsc::unbounded_channel();
        let number = self.exchange.open_stream(sender)?;
        tokio::spawn(receive_plans(Arc::clone(&self.exchange), number, request.into_inner()));
        // The response headers leave with this return, before the first result exists.
        Ok(Response::new(ResultStream { results, number, exchange: Arc::clone(&self.exchange) }))
    }

    async fn health(&self, _: Request<v1::HealthRequest>) -> Result<Response<v1::HealthResponse>, Status> {
        Ok(Response::new(self.exchange.health()))
    }
}

/// Moves the plans of one stream into the exchange until the client closes, cancels or breaks the rules.
async fn receive_plans(exchange: Arc<Exchange>, number: u64, mut plans: Streaming<v1::StepPlan>) {
    loop {
        let accepted = match plans.message().await {
            Ok(Some(plan)) => check::plan_shape(&plan)
                .map_err(Status::invalid_argument)
                .and_then(|()| exchange.push_plan(number, plan)),
            Ok(None) => return exchange.finish_stream(number),
            Err(status) => Err(status),
        };
        if let Err(status) = accepted {
            return exchange.end_stream(number, Some(status));
        }
    }
}

// === impl ResultStream ===

impl Stream for ResultStream {
    type Item = Result<v1::StepResult, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.results.poll_recv(context)
    }
}

impl Drop for ResultStream {
    fn drop(&mut self) {
        self.exchange.end_stream(self.number, None);
    }
}
