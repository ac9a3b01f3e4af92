//! `service Directory` as tonic serves it. Not generated, since the generated one takes messages only and we say some of
//! them to a thousand sessions.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use tonic::body::Body;
use tonic::codegen::{Body as HttpBody, BoxFuture, Service, StdError, http};
use tonic::server::{Grpc, NamedService, StreamingService};
use tonic::{Request, Response, Status, Streaming};
use wire::directory as msg;

use super::codec::SaidCodec;
use super::outbox::Answers;
use super::session::Sessions;

const SESSION: &str = "/linkstead.directory.Directory/Session";

#[derive(Debug, Clone)]
pub(super) struct Front(pub Arc<Sessions>);

impl NamedService for Front {
    const NAME: &'static str = "linkstead.directory.Directory";
}

impl StreamingService<msg::ToDirectory> for Front {
    type Response = Bytes;
    type ResponseStream = Answers;
    type Future = std::future::Ready<Result<Response<Self::ResponseStream>, Status>>;

    fn call(&mut self, request: Request<Streaming<msg::ToDirectory>>) -> Self::Future {
        std::future::ready(self.0.begin(request))
    }
}

impl<B> Service<http::Request<B>> for Front
where
    B: HttpBody + Send + 'static,
    B::Error: Into<StdError> + Send + 'static,
{
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Self::Error>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let front = self.clone();
        Box::pin(async move {
            match request.uri().path() {
                SESSION => Ok(Grpc::new(SaidCodec).streaming(front, request).await),
                other => Ok(Status::unimplemented(format!("there is no {other}")).into_http()),
            }
        })
    }
}
