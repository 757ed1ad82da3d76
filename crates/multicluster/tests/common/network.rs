//! A network between a manager and a cluster that can be made to fail.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    future::pending,
    pin::Pin,
    sync::{Arc, Mutex, Weak},
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body as HttpBody, Frame, SizeHint};
use k1s::{
    BoxError, Connect,
    env::Env,
    kube::{self, client::Body},
};

use super::server::Server;

/// How a network treats requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Fine,
    /// Nothing gets through, and clients are told so.
    Refuses,
    /// Nothing gets through, and clients are not told.
    Hangs,
    /// Some requests are late, get lost, or their answers do; watches end, break or fall silent.
    Faulty,
}

/// A client through the network of this name, while it lives.
type Client = (String, Weak<()>);

/// The networks of a world, one for each cluster.
#[derive(Clone)]
pub struct Networks {
    env: Env,
    modes: Arc<Mutex<BTreeMap<String, Mode>>>,
    lines: Arc<Mutex<Vec<Client>>>,
}

impl Networks {
    pub fn new(env: &Env) -> Networks {
        Networks { env: env.clone(), modes: Arc::default(), lines: Arc::default() }
    }

    /// A connection to the tenant of this name, through the network of this name.
    pub fn line(&self, name: &str, server: &Server) -> Line {
        Line { server: server.clone(), name: name.to_owned(), networks: self.clone() }
    }

    pub fn set(&self, name: &str, mode: Mode) {
        self.modes.lock().unwrap().insert(name.to_owned(), mode);
    }

    /// From now on everything works; what hangs goes on hanging.
    pub fn heal(&self) {
        self.modes.lock().unwrap().clear();
    }

    fn mode(&self, name: &str) -> Mode {
        self.modes.lock().unwrap().get(name).copied().unwrap_or(Mode::Fine)
    }

    /// How many clients through this network somebody still has.
    pub fn clients(&self, name: &str) -> usize {
        let lines = self.lines.lock().unwrap();
        lines.iter().filter(|(of, line)| of == name && line.strong_count() > 0).count()
    }
}

/// A connection to a cluster.
pub struct Line {
    server: Server,
    name: String,
    networks: Networks,
}

impl Connect for Line {
    fn client(&self) -> kube::Client {
        let (server, name, networks) = (self.server.clone(), self.name.clone(), self.networks.clone());
        let line = Arc::new(());
        networks.lines.lock().unwrap().push((name.clone(), Arc::downgrade(&line)));
        let service = tower::service_fn(move |request: Request<Body>| {
            let (server, name, networks, line) =
                (server.clone(), name.clone(), networks.clone(), Arc::clone(&line));
            async move {
                let answer = networks.send(&name, &server, request).await;
                drop(line);
                answer
            }
        });
        kube::Client::new(service, "default")
    }
}

impl Networks {
    async fn send(
        &self,
        name: &str,
        server: &Server,
        request: Request<Body>,
    ) -> Result<Response<Cut>, BoxError> {
        let whole = |response: Response<Body>| response.map(|body| Cut::new(body, End::Own, u64::MAX));
        match self.mode(name) {
            Mode::Fine => return Ok(whole(server.send(name, request).await?)),
            Mode::Refuses => return Err("connection refused".into()),
            Mode::Hangs => hang().await?,
            Mode::Faulty => {}
        }
        let is_watch = request.uri().query().is_some_and(|query| query.contains("watch="));
        match self.env.random_below(20) {
            0 => return Err("connection reset before the request".into()),
            1 => hang().await?,
            2 | 3 => self.env.sleep(Duration::from_millis(self.env.random_below(4000))).await,
            4 => {
                // The server does what it is asked to, and nobody hears of it.
                drop(server.send(name, request).await?);
                return Err("connection reset before the answer".into());
            }
            5 => {
                drop(server.send(name, request).await?);
                hang().await?;
                return Err("never".into());
            }
            _ => {}
        }
        let response = server.send(name, request).await?;
        let ends = [End::Own, End::Early, End::Error, End::Silence];
        let end = ends[self.env.random_below(if is_watch { 4 } else { 10 }).min(3) as usize];
        Ok(match (is_watch, end) {
            (true, end) => response.map(|body| Cut::new(body, end, self.env.random_below(6))),
            // The answer of one in ten others breaks or stalls before its first byte.
            (false, End::Early) => response.map(|body| Cut::new(body, End::Error, 0)),
            (false, _) => whole(response),
        })
    }
}

async fn hang() -> Result<(), BoxError> {
    pending::<Infallible>().await;
    Err("never".into())
}

/// How a body ends after some frames.
#[derive(Clone, Copy, Debug)]
enum End {
    /// As it does by itself.
    Own,
    Early,
    Error,
    Silence,
}

/// A body that ends after some frames.
pub struct Cut {
    body: Body,
    end: End,
    left: u64,
}

impl Cut {
    fn new(body: Body, end: End, left: u64) -> Cut {
        Cut { body, end, left }
    }
}

impl HttpBody for Cut {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if self.left == 0 {
            match self.end {
                End::Own => {}
                End::Early => return Poll::Ready(None),
                End::Error => return Poll::Ready(Some(Err("connection reset".into()))),
                End::Silence => return Poll::Pending,
            }
        }
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        self.left = self.left.saturating_sub(1);
        Poll::Ready(frame.map(|frame| frame.map_err(Into::into)))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}
