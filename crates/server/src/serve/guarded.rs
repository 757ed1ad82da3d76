//! A connection's stream: records incoming bytes, and fails when the client stops reading.

use std::{
    future::Future as _,
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use k1s_env::{Env, Sleep};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::connections::Connection;

pub(super) struct Guarded<S> {
    stream: S,
    env: Env,
    connection: Arc<Connection>,
    write_timeout: Duration,
    /// The timeout of a blocked write.
    stalled: Option<Sleep>,
}

impl<S> Guarded<S> {
    pub(super) fn new(
        env: &Env,
        stream: S,
        connection: Arc<Connection>,
        write_timeout: Duration,
    ) -> Guarded<S> {
        Guarded { stream, env: env.clone(), connection, write_timeout, stalled: None }
    }

    fn watch<T>(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            if self.stalled.take().is_some() {
                self.connection.set_writing(false);
            }
            return written;
        }
        let stalled = self.stalled.get_or_insert_with(|| {
            self.connection.set_writing(true);
            self.env.sleep(self.write_timeout)
        });
        if Pin::new(stalled).poll(cx).is_pending() {
            return Poll::Pending;
        }
        let why = format!("the client has read nothing for {:?}", self.write_timeout);
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, why)))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Guarded<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        if buf.filled().len() > before {
            self.connection.set_received();
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Guarded<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.watch(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.watch(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    // Flushing or shutting down a socket does not wait for the client.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
