//! The process of the floor: hyper, and answers that are there already.

use std::{collections::BTreeMap, convert::Infallible, net::Ipv4Addr, path::PathBuf, pin::Pin, sync::Arc};

use bytes::Bytes;
use clap::Args;
use futures_util::{Stream, stream};
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body::Frame;
use http_body_util::{BodyExt as _, Either, Full, StreamBody};
use hyper::{body::Incoming, server::conn, service::service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo};
use k1s_env::Env;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _};
use tokio::{
    io::AsyncReadExt as _,
    net::{TcpListener, TcpStream},
    sync::watch,
};
use tokio_rustls::TlsAcceptor;

use super::{
    answers::{self, Answers},
    apply::{Applies, Statuses},
    log::Log,
    secure::{Audit, Rules, Sealed},
};
use crate::{Failure, report, server::work};

#[derive(Args)]
pub(crate) struct Options {
    /// The folder of the answers
    answers: PathBuf,
    /// HTTPS with HTTP/2 instead of HTTP/1.1
    #[arg(long)]
    tls: bool,
    /// The file to which writes are appended before they are answered
    #[arg(long)]
    log: Option<PathBuf>,
    /// Look for a rule that allows each request
    #[arg(long)]
    rules: bool,
    /// The file to which two lines are written about each request
    #[arg(long)]
    audit: Option<PathBuf>,
    /// Encrypt what is written, and decrypt what is read
    #[arg(long)]
    seal: bool,
}

/// Serves until standard input ends. Prints the address.
pub(crate) async fn run(options: Options) -> Result<(), Failure> {
    let env = Env::system();
    let floor = Arc::new(Replies::open(&env, &options)?);
    let tls = if options.tls { Some(TlsAcceptor::from(Arc::new(tls_config()?))) } else { None };
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    report::print(&listener.local_addr()?.to_string());
    let mut input = tokio::io::stdin();
    let mut byte = [0];
    loop {
        let (stream, _) = tokio::select! {
            accepted = listener.accept() => accepted?,
            _ = input.read(&mut byte) => return Ok(()),
        };
        stream.set_nodelay(true)?;
        let (floor, tls) = (floor.clone(), tls.clone());
        // A connection that fails is the client's to report.
        drop(env.spawn("connection", async move { drop(converse(floor, tls, stream).await) }));
    }
}

async fn converse(floor: Arc<Replies>, tls: Option<TlsAcceptor>, stream: TcpStream) -> Result<(), Failure> {
    let service = service_fn(move |request| {
        let floor = floor.clone();
        async move { floor.reply(request).await }
    });
    match tls {
        None => conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await?,
        Some(tls) => {
            let stream = TokioIo::new(tls.accept(stream).await?);
            conn::http2::Builder::new(TokioExecutor::new()).serve_connection(stream, service).await?;
        }
    }
    Ok(())
}

fn tls_config() -> Result<rustls::ServerConfig, Failure> {
    let files = k1s_server::certificate(&[Ipv4Addr::LOCALHOST.to_string()])?;
    let chain =
        CertificateDer::pem_slice_iter(files.certificate.as_bytes()).collect::<Result<Vec<_>, _>>()?;
    let key = PrivateKeyDer::from_pem_slice(files.key.as_bytes())?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(config)
}

type Chunks = Pin<Box<dyn Stream<Item = Result<Frame<Bytes>, Infallible>> + Send>>;
type Body = Either<Full<Bytes>, StreamBody<Chunks>>;

/// k1s streams longer bodies in pieces of this size.
const CHUNK: usize = 64 << 10;
/// k1s sends up to so many events together.
const BATCH: usize = 64;

/// What there is to reply with.
struct Replies {
    get: Bytes,
    created: Bytes,
    patched: Bytes,
    deleted: Bytes,
    list: Bytes,
    selected: Bytes,
    pages: BTreeMap<String, Bytes>,
    added: Bytes,
    /// The event of a patch.
    modified: Bytes,
    /// As many of them as a chunk can have: those that wait are sent together without being copied.
    modified_batch: Bytes,
    applies: Applies,
    statuses: Statuses,
    log: Option<Log>,
    rules: Option<Rules>,
    audit: Option<Audit>,
    sealed: Option<Sealed>,
    /// The number of patches: each is an event for all watches.
    events: watch::Sender<u64>,
}

impl Replies {
    fn open(env: &Env, options: &Options) -> Result<Replies, Failure> {
        let answers = Answers::read(&options.answers)?;
        let modified = answers.find(answers::MODIFIED)?;
        Ok(Replies {
            get: answers.find(answers::GET)?,
            created: answers.find(answers::CREATED)?,
            patched: answers.find(answers::PATCHED)?,
            deleted: answers.find(answers::DELETED)?,
            list: answers.find(answers::LIST)?,
            selected: answers.find(answers::SELECTED)?,
            pages: answers.pages(),
            added: answers.find(answers::ADDED)?,
            modified_batch: modified.repeat(BATCH).into(),
            modified,
            applies: Applies::new(answers.find(answers::APPLIED)?, answers.find(answers::APPLIED_FIELD)?)?,
            statuses: Statuses::new(
                answers.find(answers::STATUS_CUSTOM)?,
                answers.find(answers::STATUS_DEPLOYMENT)?,
            ),
            log: options.log.as_ref().map(|path| Log::create(env, path)).transpose()?,
            rules: options.rules.then(Rules::new),
            audit: options.audit.as_ref().map(|path| Audit::create(env, path)).transpose()?,
            sealed: options.seal.then(|| Sealed::new(&answers.find(answers::GET)?)).transpose()?,
            events: watch::Sender::new(0),
        })
    }

    async fn reply(&self, request: Request<Incoming>) -> Result<Response<Body>, Failed> {
        let (parts, body) = request.into_parts();
        if let Some(rules) = &self.rules
            && !rules.allow(&parts.headers, &parts.method, parts.uri.path())
        {
            return Ok(respond(403, whole(&Bytes::new())));
        }
        if let Some(audit) = &self.audit {
            audit.record();
        }
        if parts.method == Method::GET {
            return Ok(match parts.uri.query() {
                None if parts.uri.path().ends_with("/configmaps") => respond(200, whole(&self.list)),
                // Asked until a definition is served, which it is as soon as this object alone is missing.
                None if parts.uri.path().ends_with(work::MISSING) => {
                    respond(404, whole(&work::MISSING.into()))
                }
                None => {
                    self.sealed.iter().for_each(Sealed::read);
                    respond(200, whole(&self.get))
                }
                Some(query) if query.contains("watch=1") => respond(200, self.watch()),
                Some(query) => match query.split_once("continue=") {
                    None => respond(200, whole(&self.selected)),
                    Some((_, token)) => match self.pages.get(token) {
                        Some(page) => respond(200, whole(page)),
                        None => respond(410, whole(&Bytes::new())),
                    },
                },
            });
        }
        let body = body.collect().await?.to_bytes();
        self.sealed.iter().for_each(|sealed| sealed.write(&body));
        if let Some(log) = &self.log {
            // Without a body there is still something to write: which object is deleted.
            let entry = if body.is_empty() {
                Bytes::copy_from_slice(parts.uri.path().as_bytes())
            } else {
                body.clone()
            };
            log.append(entry).await.map_err(|failure| Failed::Log(failure.0))?;
        }
        Ok(match parts.method {
            Method::PATCH if parts.headers.get(header::CONTENT_TYPE).is_some_and(is_apply) => {
                let (status, answer) = self.applies.answer(parts.uri.path(), &body)?;
                respond(status, whole(&answer))
            }
            Method::PATCH if parts.uri.path().ends_with("/status") => {
                respond(200, whole(&self.statuses.answer(parts.uri.path(), &body)?))
            }
            Method::PATCH => {
                self.events.send_modify(|events| *events += 1);
                respond(200, whole(&self.patched))
            }
            Method::DELETE => respond(200, whole(&self.deleted)),
            _ => respond(201, whole(&self.created)),
        })
    }

    /// One event at once, and one for each patch from now on.
    fn watch(&self) -> Body {
        let first = Some(self.added.clone());
        let (size, batch) = (self.modified.len(), self.modified_batch.clone());
        let events = self.events.subscribe();
        let sent = *events.borrow();
        let chunks = stream::unfold((first, events, sent), move |(first, mut events, sent)| {
            let batch = batch.clone();
            async move {
                if let Some(first) = first {
                    return Some((Ok(Frame::data(first)), (None, events, sent)));
                }
                loop {
                    let waiting = (*events.borrow_and_update() - sent).min(BATCH as u64);
                    if waiting > 0 {
                        let chunk = batch.slice(..waiting as usize * size);
                        return Some((Ok(Frame::data(chunk)), (None, events, sent + waiting)));
                    }
                    events.changed().await.ok()?;
                }
            }
        });
        Either::Right(StreamBody::new(Box::pin(chunks)))
    }
}

fn is_apply(content_type: &HeaderValue) -> bool {
    content_type.as_bytes().starts_with(b"application/apply-patch")
}

/// Bytes as k1s sends them: in one piece, or in pieces if there are many.
fn whole(bytes: &Bytes) -> Body {
    if bytes.len() <= CHUNK {
        return Either::Left(Full::new(bytes.clone()));
    }
    let mut rest = bytes.clone();
    let chunks = std::iter::from_fn(move || {
        let chunk = rest.split_to(CHUNK.min(rest.len()));
        (!chunk.is_empty()).then(|| Ok(Frame::data(chunk)))
    });
    Either::Right(StreamBody::new(Box::pin(stream::iter(chunks))))
}

/// A response with the headers of k1s.
fn respond(status: u16, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or_default();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}

/// Why a request got no response. The client sees a connection that ends.
#[derive(Debug, thiserror::Error)]
enum Failed {
    #[error("the request cannot be read: {0}")]
    Read(#[from] hyper::Error),
    #[error("the change cannot be read: {0}")]
    Change(#[from] serde_json::Error),
    #[error("the request cannot be logged: {0}")]
    Log(String),
}
