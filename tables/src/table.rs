//! A table as a game has it: typed, and its records by their keys.

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwap;

use crate::arbiter::Mode;
use crate::backend::KEY_BYTES_MAX;
use crate::cache::cell::{CellRef, Held, Value, address};
use crate::cache::{Cache, Meta, Shelf};
use crate::error::Error;
use crate::key::Key;
use crate::record::Record;
use crate::tx::Tx;

/// The records of one type. A clone is the same table.
///
/// Everything that is read or written goes through a transaction, which may run again: a record that is not at hand ends
/// the run with [`Error::NotYet`], which is to be given on with `?`.
pub struct Table<K, V> {
    inner: Arc<Inner<K>>,
    shelf: Arc<dyn Shelf>,
    cache: Arc<Cache>,
    value: PhantomData<fn() -> V>,
}

impl<K, V> Clone for Table<K, V> {
    fn clone(&self) -> Self {
        let (inner, shelf, cache) = (self.inner.clone(), self.shelf.clone(), self.cache.clone());
        Self { inner, shelf, cache, value: PhantomData }
    }
}

impl<K, V> std::fmt::Debug for Table<K, V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Table").field("name", &self.inner.meta.name).finish_non_exhaustive()
    }
}

/// What a commit has done to a record.
#[derive(Debug, Clone, PartialEq)]
pub struct Changed<K, V> {
    pub key: K,
    /// `None`: there was none.
    pub before: Option<Arc<V>>,
    /// `None`: it was removed.
    pub after: Option<Arc<V>>,
}

type Listener<K> = Arc<dyn Fn(&K, &Held, &Held) + Send + Sync>;

struct Inner<K> {
    meta: Meta,
    map: papaya::HashMap<K, CellRef, foldhash::fast::RandomState>,
    decode: fn(&[u8]) -> Result<Held, prost::DecodeError>,
    listeners: ArcSwap<Vec<Listener<K>>>,
    /// There are some: what every commit looks at.
    listened_to: AtomicBool,
}

impl<K: Key> Shelf for Inner<K> {
    fn meta(&self) -> &Meta {
        &self.meta
    }

    fn decode(&self, bytes: &[u8]) -> Result<Held, prost::DecodeError> {
        (self.decode)(bytes)
    }

    fn forget(&self, key: &[u8], cell: &CellRef) {
        let mut rest = key;
        if let Some(key) = K::decode(&mut rest) {
            // Another cell that has come in its place stays.
            let _ = self.map.pin().remove_if(&key, |_, there| address(there) == address(cell));
        }
    }

    fn is_listened_to(&self) -> bool {
        self.listened_to.load(Ordering::Relaxed)
    }

    fn tell(&self, key: &[u8], before: &Held, after: &Held) {
        let mut rest = key;
        let Some(key) = K::decode(&mut rest) else { return };
        for listener in self.listeners.load().iter() {
            listener(&key, before, after);
        }
    }
}

fn decode<V: Record>(bytes: &[u8]) -> Result<Held, prost::DecodeError> {
    Ok(Some(Arc::new(V::decode(bytes)?)))
}

/// A value as what it is; `None` when it is something else, which the registration of tables rules out.
fn typed<V: Record>(value: &Arc<dyn Value>) -> Option<Arc<V>> {
    value.clone().any_arc().downcast().ok()
}

impl<K: Key, V: Record<Key = K>> Table<K, V> {
    pub(crate) fn new(cache: Arc<Cache>) -> Self {
        let meta = Meta { id: V::ID, name: V::TABLE, durability: V::DURABILITY };
        let map = papaya::HashMap::with_hasher(foldhash::fast::RandomState::default());
        let inner = Arc::new(Inner {
            meta,
            map,
            decode: decode::<V>,
            listeners: ArcSwap::default(),
            listened_to: AtomicBool::new(false),
        });
        Self { shelf: inner.clone(), inner, cache, value: PhantomData }
    }

    fn cell(&self, tx: &mut Tx, key: &K) -> Result<CellRef, Error> {
        tx.check_home(&self.cache)?;
        let map = self.inner.map.pin();
        if let Some(cell) = map.get(key) {
            return Ok(cell.clone());
        }
        let mut bytes = Vec::with_capacity(16);
        key.encode(&mut bytes);
        if bytes.is_empty() || bytes.len() > KEY_BYTES_MAX {
            return Err(tx.refuse(Error::Key { table: self.inner.meta.name, bytes: bytes.len() }));
        }
        let cell = self.cache.cell(&self.shelf, &bytes);
        Ok(map.get_or_insert(key.clone(), cell).clone())
    }

    /// The record as this transaction sees it.
    pub fn get(&self, tx: &mut Tx, key: &K) -> Result<Option<Arc<V>>, Error> {
        let cell = self.cell(tx, key)?;
        let at = tx.read(cell)?;
        Ok(tx.value(at).as_ref().and_then(typed))
    }

    /// Whether there is one.
    pub fn contains(&self, tx: &mut Tx, key: &K) -> Result<bool, Error> {
        let cell = self.cell(tx, key)?;
        let at = tx.read(cell)?;
        Ok(tx.value(at).is_some())
    }

    /// The record, to be changed in place; `None`: there is none.
    pub fn get_mut<'t>(&self, tx: &'t mut Tx, key: &K) -> Result<Option<&'t mut V>, Error> {
        let cell = self.cell(tx, key)?;
        let at = tx.read_to_write(cell)?;
        if tx.value(at).is_none() {
            return Ok(None);
        }
        tx.begin_write(at, self.inner.meta)?;
        Ok(tx.value_mut(at).as_mut().and_then(own::<V>))
    }

    /// The record, to be changed in place; a new one, as its type begins, if there was none.
    pub fn get_or_default<'t>(&self, tx: &'t mut Tx, key: &K) -> Result<&'t mut V, Error> {
        let cell = self.cell(tx, key)?;
        let at = tx.read_to_write(cell)?;
        tx.begin_write(at, self.inner.meta)?;
        let value = tx.value_mut(at).get_or_insert_with(|| Arc::new(V::default()));
        // The registration of tables rules out another type.
        own::<V>(value).ok_or(Error::NotYet)
    }

    /// Puts a record there, whatever was.
    pub fn put(&self, tx: &mut Tx, key: &K, value: V) -> Result<(), Error> {
        let cell = self.cell(tx, key)?;
        let at = tx.overwrite(cell)?;
        tx.begin_write(at, self.inner.meta)?;
        *tx.value_mut(at) = Some(Arc::new(value));
        Ok(())
    }

    /// Removes the record; whether there was one.
    pub fn remove(&self, tx: &mut Tx, key: &K) -> Result<bool, Error> {
        let cell = self.cell(tx, key)?;
        let at = tx.read_to_write(cell)?;
        if tx.value(at).is_none() {
            return Ok(false);
        }
        tx.begin_write(at, self.inner.meta)?;
        *tx.value_mut(at) = None;
        Ok(true)
    }

    /// Says early which records the transaction will read, so that all that are not at hand come in one go.
    pub fn want(&self, tx: &mut Tx, keys: &[K]) -> Result<(), Error> {
        self.want_all(tx, keys, Mode::Share)
    }

    /// Says early which records the transaction will change, so that all that are not at hand come in one go.
    pub fn want_mut(&self, tx: &mut Tx, keys: &[K]) -> Result<(), Error> {
        self.want_all(tx, keys, Mode::Modify)
    }

    fn want_all(&self, tx: &mut Tx, keys: &[K], mode: Mode) -> Result<(), Error> {
        for key in keys {
            let cell = self.cell(tx, key)?;
            tx.want(cell, mode);
        }
        tx.all_at_hand()
    }

    /// From now on `listener` hears of every change that a transaction of this process commits: once each, in the order of
    /// the commits, after them, and outside of all locks. It may begin transactions and must not wait.
    pub fn listen(&self, listener: impl Fn(Changed<K, V>) + Send + Sync + 'static) {
        let listener: Listener<K> = Arc::new(move |key, before, after| {
            let of = |held: &Held| held.as_ref().and_then(typed);
            listener(Changed { key: key.clone(), before: of(before), after: of(after) });
        });
        self.inner.listeners.rcu(|all| {
            let mut all = Vec::clone(all);
            all.push(listener.clone());
            all
        });
        self.inner.listened_to.store(true, Ordering::Relaxed);
    }
}

/// The value, of which nobody else has this copy.
fn own<V: Record>(value: &mut Arc<dyn Value>) -> Option<&mut V> {
    if Arc::get_mut(value).is_none() {
        let copy: V = value.any().downcast_ref::<V>()?.clone();
        *value = Arc::new(copy);
    }
    Arc::get_mut(value)?.any_mut().downcast_mut()
}
