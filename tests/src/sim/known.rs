//! Faults of cores that the simulator has found and that are not mended yet. Runs pass over exactly these. Whoever mends
//! one sets its line to `false` and sees the runs hold, then deletes the line and what asks for it.

/// A router tells only sessions that are *bound* to a provider that broke. A request that was merely sent there (routed
/// by a key, or of a dynamic module that is bound to nobody) is never answered, and its client is told nothing.
pub const UNBOUND_ARE_NOT_TOLD: bool = true;

/// A directory without memory whose wall clock was set back gives a new start a smaller epoch than its former one, when
/// that start joins before anybody has reported a larger one.
pub const CLOCK_BACK_REPEATS_EPOCHS: bool = true;

/// A provider whose epoch is older than one that linkds have seen (another start of it was let in, and the directory has
/// forgotten that since) is refused by every linkd and dials on for ever. The model ends then and is started anew, which
/// is what the code STALE_EPOCH asks for and what `provider::dial` does not do.
pub const STALE_PROVIDERS_DIAL_ON: bool = true;
