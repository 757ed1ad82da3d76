//! The connections to one server.

use std::sync::Arc;

use futures_util::{
    FutureExt as _,
    future::{BoxFuture, Shared},
};
use hyper::client::conn::http2::SendRequest;
use kube::client::Body;
use parking_lot::Mutex;

use super::connection::{ConnectError, Connection, Dialed, Dialer};

pub(super) struct Pool {
    dialer: Arc<Dialer>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    open: Vec<Arc<Connection>>,
    connecting: Option<Connecting>,
    /// Whether the server has chosen HTTP/1.1.
    http1: bool,
}

/// An attempt to connect. Whoever needs a connection waits for the same one.
struct Connecting {
    attempt: Attempt,
    waiting: usize,
}

type Attempt = Shared<BoxFuture<'static, Result<Dialed, Arc<ConnectError>>>>;

/// How a request can be sent.
pub(super) enum Way {
    Http2(Lease),
    Http1,
}

/// A place for a request on a connection.
pub(super) struct Lease(Arc<Connection>);

impl Lease {
    pub(super) fn sender(&self) -> SendRequest<Body> {
        self.0.sender()
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.0.leave();
    }
}

impl Pool {
    pub(super) fn new(dialer: Dialer) -> Pool {
        Pool { dialer: Arc::new(dialer), state: Mutex::default() }
    }

    /// Waits for a place on a connection; connects if there is none.
    pub(super) async fn lease(&self) -> Result<Way, Arc<ConnectError>> {
        loop {
            let attempt = match self.state.lock().enter(&self.dialer) {
                Ok(way) => return Ok(way),
                Err(attempt) => attempt,
            };
            let waiting = Waiting { pool: self, attempt };
            let dialed = waiting.attempt.clone().await;
            self.state.lock().finish(&waiting.attempt, dialed)?;
        }
    }
}

/// Somebody who waits for an attempt. It is given up with the last of them: nobody would poll it, and whoever comes later would be
/// told that the server has not answered in time.
struct Waiting<'a> {
    pool: &'a Pool,
    attempt: Attempt,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut state = self.pool.state.lock();
        let Some(current) = state.current(&self.attempt) else { return };
        current.waiting -= 1;
        if current.waiting == 0 {
            state.connecting = None;
        }
    }
}

impl State {
    /// A place on an open connection, or the attempt to open one more, which is waited for.
    fn enter(&mut self, dialer: &Arc<Dialer>) -> Result<Way, Attempt> {
        if self.http1 {
            return Ok(Way::Http1);
        }
        self.open.retain(|connection| connection.is_open());
        if let Some(connection) = self.open.iter().find(|connection| connection.enter()) {
            return Ok(Way::Http2(Lease(Arc::clone(connection))));
        }
        let connecting = self.connecting.get_or_insert_with(|| {
            let dialer = Arc::clone(dialer);
            let attempt = async move { dialer.dial().await.map_err(Arc::new) }.boxed().shared();
            Connecting { attempt, waiting: 0 }
        });
        connecting.waiting += 1;
        Err(connecting.attempt.clone())
    }

    /// The attempt that is waited for, if it is this one.
    fn current(&mut self, attempt: &Attempt) -> Option<&mut Connecting> {
        self.connecting.as_mut().filter(|current| current.attempt.ptr_eq(attempt))
    }

    /// Keeps the result of an attempt; all who wait for it do.
    fn finish(
        &mut self,
        attempt: &Attempt,
        dialed: Result<Dialed, Arc<ConnectError>>,
    ) -> Result<(), Arc<ConnectError>> {
        if self.current(attempt).is_some() {
            self.connecting = None;
            match &dialed {
                Ok(Dialed::Http2(connection)) => self.open.push(Arc::clone(connection)),
                Ok(Dialed::Http1) => self.http1 = true,
                Err(_) => {}
            }
        }
        dialed.map(drop)
    }
}
