//! How important a message is: what is given up last and what first when there is too much.

/// From what is given up last to what is given up first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Level {
    /// What must run even at an overloaded provider: logout, payment.
    CriticalPlus = 0,
    Critical = 1,
    #[default]
    Normal = 2,
    /// What is worth nothing a second later: positions, gestures, hints.
    Sheddable = 3,
}

impl Level {
    pub const ALL: [Level; 4] = [Level::CriticalPlus, Level::Critical, Level::Normal, Level::Sheddable];

    /// The level of this number in a Bind; a number we don't know is normal.
    pub fn of(number: u32) -> Self {
        Self::ALL.into_iter().find(|level| *level as u32 == number).unwrap_or_default()
    }

    /// The two bits of a node frame's flags. Normal is 0, so that a frame without them is normal.
    pub(crate) const fn bits(self) -> u8 {
        self as u8 ^ Level::Normal as u8
    }

    pub(crate) const fn of_bits(bits: u8) -> Self {
        match bits ^ Level::Normal as u8 {
            0 => Level::CriticalPlus,
            1 => Level::Critical,
            3 => Level::Sheddable,
            _ => Level::Normal,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_come_back_and_normal_has_none() {
        for level in Level::ALL {
            assert_eq!(Level::of_bits(level.bits()), level);
            assert_eq!(Level::of(level as u32), level);
        }
        assert_eq!((Level::Normal.bits(), Level::of(9)), (0, Level::Normal));
    }
}
