//! Core: who holds one record. A holder is a session's slot and the number of its grant in one word; one or two need no
//! memory of their own, which is nearly every record.

use super::event::{Mode, Seq};

const SEQ_BITS: u32 = 48;
const SEQ_MASK: u64 = (1 << SEQ_BITS) - 1;

/// One session's permission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Holder(u64);

impl Holder {
    pub fn new(slot: u16, seq: Seq) -> Self {
        Self(u64::from(slot) << SEQ_BITS | seq.0 & SEQ_MASK)
    }

    pub fn slot(self) -> u16 {
        (self.0 >> SEQ_BITS) as u16
    }

    pub fn seq(self) -> Seq {
        Seq(self.0 & SEQ_MASK)
    }
}

/// The holders of one record: nobody, one that may change it, or some that may read it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum Holders {
    #[default]
    None,
    Modify(Holder),
    One(Holder),
    Two([Holder; 2]),
    /// Three or more.
    Many(Vec<Holder>),
}

impl Holders {
    pub fn as_slice(&self) -> &[Holder] {
        match self {
            Self::None => &[],
            Self::Modify(one) | Self::One(one) => std::slice::from_ref(one),
            Self::Two(two) => two,
            Self::Many(many) => many,
        }
    }

    pub fn is_empty(&self) -> bool {
        matches!(self, Self::None)
    }

    pub fn modifier(&self) -> Option<Holder> {
        if let Self::Modify(one) = self { Some(*one) } else { None }
    }

    pub fn get(&self, slot: u16) -> Option<Holder> {
        self.as_slice().iter().copied().find(|holder| holder.slot() == slot)
    }

    /// What the session in this slot may do.
    pub fn mode(&self, slot: u16) -> Mode {
        match self {
            Self::Modify(one) if one.slot() == slot => Mode::Modify,
            Self::Modify(_) => Mode::Invalid,
            _ if self.get(slot).is_some() => Mode::Share,
            _ => Mode::Invalid,
        }
    }

    /// Another reader, who is none yet. Not while somebody may change the record.
    pub fn share(&mut self, new: Holder) {
        debug_assert!(self.modifier().is_none() && self.get(new.slot()).is_none());
        *self = match std::mem::take(self) {
            Self::None => Self::One(new),
            Self::One(one) | Self::Modify(one) => Self::Two([one, new]),
            Self::Two([one, two]) => Self::Many(vec![one, two, new]),
            Self::Many(mut many) => {
                many.push(new);
                Self::Many(many)
            }
        };
    }

    /// Who may change it goes on reading it.
    pub fn downgrade(&mut self) {
        if let Self::Modify(one) = self {
            *self = Self::One(*one);
        }
    }

    /// Drops those that `keep` does not want.
    pub fn retain(&mut self, keep: impl Fn(Holder) -> bool) {
        if self.as_slice().iter().all(|holder| keep(*holder)) {
            return;
        }
        let kept: Vec<Holder> = self.as_slice().iter().copied().filter(|holder| keep(*holder)).collect();
        *self = match (kept.as_slice(), &*self) {
            ([], _) => Self::None,
            ([one], Self::Modify(_)) => Self::Modify(*one),
            ([one], _) => Self::One(*one),
            ([one, two], _) => Self::Two([*one, *two]),
            _ => Self::Many(kept),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_grows_and_shrinks_between_its_shapes() {
        let of = |slot| Holder::new(slot, Seq(u64::from(slot) + 100));
        let mut holders = Holders::default();
        for slot in 0..5 {
            holders.share(of(slot));
            assert_eq!(holders.as_slice().len(), usize::from(slot) + 1);
        }
        assert_eq!(holders.get(3).unwrap().seq(), Seq(103));
        holders.retain(|holder| holder.slot() >= 3);
        assert_eq!(holders, Holders::Two([of(3), of(4)]));
        holders.retain(|holder| holder.slot() == 4);
        assert_eq!((holders.mode(4), holders.mode(3)), (Mode::Share, Mode::Invalid));
        holders.retain(|_| false);
        assert!(holders.is_empty());
        let mut holders = Holders::Modify(of(7));
        assert_eq!((holders.mode(7), holders.mode(8)), (Mode::Modify, Mode::Invalid));
        holders.downgrade();
        assert_eq!(holders.mode(7), Mode::Share);
    }

    #[test]
    fn the_largest_slot_and_number_fit() {
        let holder = Holder::new(u16::MAX, Seq(SEQ_MASK));
        assert_eq!((holder.slot(), holder.seq()), (u16::MAX, Seq(SEQ_MASK)));
        assert_eq!(size_of::<Holders>(), 24);
    }
}
