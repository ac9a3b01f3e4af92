//! From modules, configuration and surroundings to a running provider.

use std::collections::BTreeSet;
use std::sync::Arc;

use base::{Epoch, NodeId, ServerId};
use net::dial::Backoff;
use net::{NetIo, Security};
use node::config::{BadSetting, Problem};
use node::directory::JoinError;
use node::lifecycle::{BadBudgets, Budgets};
use node::telemetry::TelemetryError;
use node::{Clock, Directory, Home, Shutdown};
use parking_lot::Mutex;
use tables::{Backend, Db, Key, Record};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use wire::code;

use crate::auth::{Authenticator, Judge};
use crate::config::Config;
use crate::control::{self, Control};
use crate::discovery;
use crate::error::{Error, Result};
use crate::hub::{Hub, Identity};
use crate::linkds::Linkd;
use crate::links::Links;
use crate::module::{Descriptor, Module};
use crate::online::Online;
use crate::records::Records;
use crate::running::Running;
use crate::table::Table;
use crate::threads::{self, Io, Pool};

/// Ends of connections on their way to the control thread. When it is full, diallers wait: nothing depends on them.
const ENDED_MAX: usize = 256;

/// Why a provider did not start. The operator's or the programmer's to mend; starting again without a change helps only
/// with [`StartError::Threads`].
#[derive(Debug, Clone, thiserror::Error)]
pub enum StartError {
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Config(Vec<Problem>),
    #[error(transparent)]
    Setting(#[from] BadSetting),
    #[error(transparent)]
    Budgets(#[from] BadBudgets),
    #[error("the provider has no modules; add one with `.module(…)`")]
    NoModules,
    #[error(
        "module {name} ({id}) and module {other} ({other_id}) can't both be here: ids and names are unique; give one of \
         them another"
    )]
    DuplicateModule { name: &'static str, id: i32, other: &'static str, other_id: i32 },
    #[error("module {name} can't be built: {why}")]
    Module { name: &'static str, why: String },
    #[error(transparent)]
    Join(#[from] JoinError),
    #[error("node.id: {0}")]
    NodeId(#[from] base::id::IdError),
    #[error(transparent)]
    Telemetry(#[from] TelemetryError),
    #[error("the system gives no threads or ports: {0}")]
    Threads(String),
}

impl From<std::io::Error> for StartError {
    fn from(error: std::io::Error) -> Self {
        Self::Threads(error.to_string())
    }
}

/// Where linkds are found.
#[derive(Debug, Clone)]
pub enum Linkds {
    /// By a directory, which also gives this provider its epoch.
    Directory(Directory),
    /// As listed, under an epoch of the caller's.
    Fixed { epoch: Epoch, linkds: watch::Receiver<Arc<Vec<Linkd>>> },
}

impl Linkds {
    /// The directory, if there is one; the epoch, once it is given; the list, if it needs no directory.
    async fn found(self) -> Result<(Option<Directory>, Epoch, Option<LinkdList>), JoinError> {
        Ok(match self {
            Linkds::Directory(directory) => {
                let epoch = directory.epoch().await?;
                (Some(directory), epoch, None)
            }
            Linkds::Fixed { epoch, linkds } => (None, epoch, Some(linkds)),
        })
    }
}

type LinkdList = watch::Receiver<Arc<Vec<Linkd>>>;

/// The surroundings of a provider that is started in another program's process.
#[derive(Debug, Clone)]
pub struct Env {
    /// Must be the linkds' too.
    pub cluster: String,
    /// This node's name, unique in the cluster.
    pub node: NodeId,
    pub linkds: Linkds,
    /// How long each stage of a stop may take.
    pub budgets: Budgets,
    /// The waits between tries to reach a linkd.
    pub reconnect: Backoff,
    /// How this provider and the linkds prove to each other who they are.
    pub security: Security,
    /// An open storage that this provider shares with others of its process, instead of the one of its configuration.
    pub storage: Option<Arc<dyn Backend>>,
}

impl Env {
    /// With budgets for a process that nobody waits for, waits of 50 ms to 1 s between dials, and without certificates:
    /// for one machine.
    pub fn new(cluster: &str, node: NodeId, linkds: Linkds) -> Self {
        let seed = base::hash::bytes(node.as_str().as_bytes());
        let millis = std::time::Duration::from_millis;
        let reconnect = Backoff::new(millis(50), millis(1_000), seed);
        let (budgets, security) = (Budgets::NONE, Security::Insecure);
        Self { cluster: cluster.to_owned(), node, linkds, budgets, reconnect, security, storage: None }
    }
}

/// What a module can ask for while it is built.
///
/// ```no_run
/// # struct Clock { links: linkstead::Links }
/// # #[linkstead::module(id = 1)] impl Clock {}
/// linkstead::provider("clock").module(|setup| Ok(Clock { links: setup.links() }));
/// ```
pub struct Setup {
    hub: Arc<Hub>,
    storage: Option<Arc<dyn Backend>>,
    records: Mutex<Option<Arc<Records>>>,
}

impl Setup {
    /// This provider's configured number.
    pub fn server_id(&self) -> ServerId {
        self.hub.identity.server_id
    }

    /// This node's name.
    pub fn node(&self) -> &NodeId {
        &self.hub.identity.node
    }

    /// Which start of this node this is; larger each time.
    pub fn epoch(&self) -> Epoch {
        self.hub.identity.epoch
    }

    /// Reaches sessions from outside a handler.
    pub fn links(&self) -> Links {
        Links(self.hub.clone())
    }

    /// The table of a record, for this module. Other modules are given it, if they use it too.
    ///
    /// Errors: the storage can't be opened; another record has the same id.
    pub fn table<K: Key, V: Record<Key = K>>(&self) -> Result<tables::Table<K, V>> {
        let db = self.db()?;
        db.table().map_err(|error| Error::framework(&code::EXCEPTION, error.to_string()))
    }

    /// Numbers for the keys of new records: each once in the whole cluster, for ever.
    ///
    /// Errors: the storage can't be opened.
    pub fn auto_key(&self, name: &str) -> Result<tables::AutoKey> {
        Ok(self.db()?.auto_key(name))
    }

    /// The records of this provider, for transactions outside of handlers.
    ///
    /// Errors: the storage can't be opened.
    pub fn db(&self) -> Result<Db> {
        let mut records = self.records.lock();
        if let Some(records) = &*records {
            return Ok(records.db().clone());
        }
        let begun = Arc::new(Records::begin(&self.hub, self.storage.clone())?);
        let db = begun.db().clone();
        let once = db.table().map_err(|error| Error::framework(&code::EXCEPTION, error.to_string()))?;
        // Nobody else has put one there: it is put there under the lock.
        let _ = (self.hub.db.set(db.clone()), self.hub.once.set(once), self.hub.records.set(begun.clone()));
        *records = Some(begun);
        Ok(db)
    }

    /// Who is here, now and later.
    pub fn online(&self) -> OnlineHandle {
        OnlineHandle(self.hub.clone())
    }
}

/// [`Online`], to be kept by a module.
#[derive(Clone)]
pub struct OnlineHandle(Arc<Hub>);

impl std::ops::Deref for OnlineHandle {
    type Target = Online;

    fn deref(&self) -> &Online {
        &self.0.online
    }
}

type Make = Box<dyn FnOnce(&Setup, &mut Table) -> Result<(), StartError> + Send>;

/// A provider that has not started yet. Begin with [`provider`](crate::provider).
pub struct Builder {
    pub(crate) name: String,
    makes: Vec<Make>,
    pub(crate) modules: Vec<Descriptor>,
    /// What the messages look like, for the verb `types`.
    pub(crate) descriptors: Option<&'static [u8]>,
    judge: Option<Judge>,
}

impl Builder {
    pub(crate) fn new(name: &str) -> Self {
        Self { name: name.to_owned(), makes: Vec::new(), modules: Vec::new(), descriptors: None, judge: None }
    }

    /// Adds a module, built once at the start. An error of `make` fails the start.
    pub fn module<M: Module>(mut self, make: impl FnOnce(&Setup) -> Result<M> + Send + 'static) -> Self {
        self.modules.push(M::DESCRIPTOR);
        self.makes.push(Box::new(move |setup, table| {
            let name = M::DESCRIPTOR.name;
            let module = make(setup).map_err(|error| StartError::Module { name, why: error.to_string() })?;
            table.add(module)
        }));
        self
    }

    /// Judges logins, for gateways with `linkd.auth = "module"`. The last one given counts.
    pub fn authenticator(mut self, authenticator: impl Authenticator) -> Self {
        self.judge = Some(Judge::new(authenticator));
        self
    }

    /// Starts inside the caller's process. Waits for an epoch from the directory, not for linkds. `cancel` stops it
    /// without waits; [`Running::stop`] in order.
    ///
    /// ```no_run
    /// # async fn example(directory: linkstead::Directory) -> linkstead::Result<()> {
    /// use linkstead::{Config, Env, Linkds, NodeId};
    ///
    /// let node = NodeId::new("game-1").expect("a plain name");
    /// let env = Env::new("test", node, Linkds::Directory(directory));
    /// # struct Empty;
    /// # #[linkstead::module(id = 1)] impl Empty {}
    /// let running = linkstead::provider("game")
    ///     .module(|_| Ok(Empty))
    ///     .start(Config::default(), env, Default::default())
    ///     .await?;
    /// running.ready().await;
    /// running.stop().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn start(self, config: Config, env: Env, cancel: CancellationToken) -> Result<Running> {
        let shutdown = Shutdown::new(env.budgets, Clock::start()).map_err(StartError::from)?;
        self.begin(net::Tcp, Home::Threads, config, env, shutdown, cancel).await.map_err(Error::from)
    }

    /// Starts on the caller's current-thread runtime, inside its `LocalSet`, and over a network of the caller's: a
    /// simulated one, in which a whole game runs the same way each time. Starts no thread.
    pub async fn start_over<N: NetIo>(
        self,
        net: N,
        config: Config,
        env: Env,
        cancel: CancellationToken,
    ) -> Result<Running> {
        let shutdown = Shutdown::new(env.budgets, Clock::start()).map_err(StartError::from)?;
        self.begin(net, Home::Here, config, env, shutdown, cancel).await.map_err(Error::from)
    }

    /// `shutdown` was made with the budgets of `env`.
    pub(crate) async fn begin<N: NetIo>(
        self,
        net: N,
        home: Home,
        config: Config,
        env: Env,
        shutdown: Shutdown,
        cancel: CancellationToken,
    ) -> Result<Running, StartError> {
        config.check()?;
        if self.makes.is_empty() {
            return Err(StartError::NoModules);
        }
        let Env { cluster, node, reconnect, budgets, security, linkds, storage } = env;
        let (directory, epoch, linkds) = linkds.found().await?;
        let identity = Identity { cluster, node, epoch, server_id: config.server_id() };
        let pool = Pool::new(home, config.worker_count())?;
        let hub = Hub::new(identity, security, directory.clone(), config, self.judge, pool.handle.clone());
        let table = match build(self.makes, &hub, storage) {
            Ok(table) => Arc::new(table),
            Err(error) => {
                pool.end();
                return Err(error);
            }
        };
        let linkds = match (&directory, linkds) {
            (Some(directory), _) => {
                directory.register(discovery::services(&hub.config, &table.modules));
                discovery::linkds(directory)
            }
            (None, Some(linkds)) => linkds,
            (None, None) => watch::channel(Arc::default()).1,
        };
        let (ended, ended_receiver) = mpsc::channel(ENDED_MAX);
        let io = Io { net, hub: hub.clone(), table: table.clone(), backoff: reconnect, ended };
        let worker = |index| threads::io_worker(home, index, io.clone());
        let workers = (0..hub.config.io_workers).map(worker).collect::<std::io::Result<Vec<_>>>()?;
        drop(io);
        // Nobody has stopped it yet, so it is let in.
        let pass = shutdown.enter().map_err(|refused| StartError::Threads(refused.to_string()))?;
        let (wanted, wanted_receiver) = watch::channel(BTreeSet::new());
        let (stopped, stopped_receiver) = watch::channel(None);
        let control = Control {
            hub: hub.clone(),
            linkds,
            workers,
            ended: ended_receiver,
            wanted,
            shutdown: shutdown.clone(),
            pass,
            directory,
            // Half of what the save may take; the rest is for the directory.
            settle: std::time::Duration::from(budgets.save) / 2,
            cancel,
        };
        home.run(
            "linkstead-control",
            move || control::control(control),
            move |outcome| {
                stopped.send_replace(Some(outcome));
                pool.end();
            },
        )?;
        Ok(Running::new(hub, table, shutdown, wanted_receiver, stopped_receiver))
    }
}

fn build(makes: Vec<Make>, hub: &Arc<Hub>, storage: Option<Arc<dyn Backend>>) -> Result<Table, StartError> {
    let setup = Setup { hub: hub.clone(), storage, records: Mutex::new(None) };
    let mut table = Table::default();
    for make in makes {
        make(&setup, &mut table)?;
    }
    if table.transactional {
        let name = "with transactions";
        setup.db().map_err(|error| StartError::Module { name, why: error.to_string() })?;
    }
    warn_about_choices(&table, hub);
    Ok(table)
}

/// The first request binds every static module of the chosen provider, so modules that are chosen differently surprise.
fn warn_about_choices(table: &Table, hub: &Hub) {
    let fixed = table.modules.iter().filter(|module| !module.dynamic).map(|module| hub.describe(module));
    let choices: Vec<_> = fixed.map(|module| (module.name, module.choice)).collect();
    if choices.windows(2).any(|pair| pair[0].1 != pair[1].1) {
        let list: Vec<_> = choices.iter().map(|(name, choice)| format!("{name} by {choice}")).collect();
        tracing::warn!(
            modules = list.join(", "),
            "static modules are chosen differently; whichever is asked first decides for all"
        );
    }
    for name in
        hub.config.modules.keys().filter(|name| !table.modules.iter().any(|module| module.name == *name))
    {
        tracing::warn!(key = format!("provider.modules.{name}"), "no module here has this name");
    }
}
