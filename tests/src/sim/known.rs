//! Faults of cores that the simulator has found and that are not mended yet. Runs pass over exactly these. Whoever mends
//! one sets its line to `false` and sees the runs hold, then deletes the line and what asks for it.

/// A directory without memory whose wall clock was set back gives a new start a smaller epoch than its former one, when
/// that start joins before anybody has reported a larger one.
pub const CLOCK_BACK_REPEATS_EPOCHS: bool = true;
