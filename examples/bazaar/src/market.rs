//! Module `Market`: what is for sale. A trade is one transaction over the two accounts, the buyer's bag, the offer and its
//! shelf, wherever these were used last.

use std::sync::Arc;

use linkstead::{Result, Tx, module};

use crate::codes::{self, NO_SUCH_OFFER, SAME_ACCOUNT};
use crate::messages::{List, Listed, Listing, MakeOffer, Offered, Sold, Take, Taken, Withdraw, Withdrawn};
use crate::records::Offer;
use crate::rules;
use crate::store::{Store, who};

pub struct Market(pub(crate) Store);

/// An offer: its seller, and the number that it has among his.
type Id = (String, u64);

#[module(id = 12, choice = "hash_account", pushes(Sold))]
impl Market {
    #[handler(once = 1)]
    async fn offer(&self, tx: &mut Tx, request: MakeOffer) -> Result<Offered> {
        let id = (who(tx), request.request);
        rules::kind(&request.kind).map_err(codes::refuse)?;
        let count = rules::amount(request.count).map_err(codes::refuse)?;
        let price = rules::amount(request.price).map_err(codes::refuse)?;
        self.want(tx, &id, &id.0, &request.kind)?;
        self.0.bag(tx, &id.0)?.remove(&request.kind, count).map_err(codes::refuse)?;
        self.0.account(tx, &id.0)?.add_offer(id.1).map_err(codes::refuse)?;
        let offer = Offer { kind: request.kind, count, price };
        let shelf = self.0.shelves.get_or_default(tx, &offer.kind)?;
        shelf.add(&id.0, id.1, &offer).map_err(codes::refuse)?;
        self.0.offers.put(tx, &id, offer)?;
        Ok(Offered { balance: Some(self.0.balance(tx, &id.0)?) })
    }

    #[handler(once = 1)]
    async fn take(&self, tx: &mut Tx, request: Take) -> Result<Taken> {
        let (buyer, id) = (who(tx), (request.seller, request.number));
        if id.0 == buyer {
            return Err(codes::refuse(SAME_ACCOUNT));
        }
        let offer = self.end(tx, &id, &buyer, &request.kind)?;
        self.0.account(tx, &buyer)?.pay(offer.price).map_err(codes::refuse)?;
        self.0.account(tx, &id.0)?.earn(offer.price);
        let listed = listed(&id, &offer);
        if let Some(link) = self.0.session(&id.0) {
            tx.push_to(&link, &Sold { offer: Some(listed.clone()), buyer: buyer.clone() });
        }
        Ok(Taken { offer: Some(listed), balance: Some(self.0.balance(tx, &buyer)?) })
    }

    #[handler(once = 1)]
    async fn withdraw(&self, tx: &mut Tx, request: Withdraw) -> Result<Withdrawn> {
        let id = (who(tx), request.number);
        self.end(tx, &id, &id.0, &request.kind)?;
        Ok(Withdrawn { balance: Some(self.0.balance(tx, &id.0)?) })
    }

    #[handler(level = "sheddable")]
    async fn list(&self, tx: &mut Tx, request: List) -> Result<Listing> {
        rules::kind(&request.kind).map_err(codes::refuse)?;
        let shelf = self.0.shelves.get(tx, &request.kind)?.unwrap_or_default();
        let kind = request.kind;
        let places = shelf.places.iter().cloned();
        let offers = places.map(|place| Listed {
            seller: place.seller,
            number: place.number,
            kind: kind.clone(),
            count: place.count,
            price: place.price,
        });
        Ok(Listing { offers: offers.collect() })
    }
}

impl Market {
    /// Ends an offer: its items go into this account's bag.
    fn end(&self, tx: &mut Tx, id: &Id, to: &str, kind: &str) -> Result<Arc<Offer>> {
        self.want(tx, id, to, kind)?;
        let none = || codes::refuse(NO_SUCH_OFFER);
        let offer = self.0.offers.get(tx, id)?.filter(|offer| offer.kind == kind).ok_or_else(none)?;
        self.0.offers.remove(tx, id)?;
        let shelf = self.0.shelves.get_or_default(tx, &offer.kind)?;
        shelf.remove(&id.0, id.1).map_err(codes::refuse)?;
        self.0.account(tx, &id.0)?.end_offer(id.1);
        self.0.bag(tx, &to.to_owned())?.add(&offer.kind, offer.count);
        Ok(offer)
    }

    /// Says at once what is about to change, so that what is not at hand comes in one go and not one after another: the
    /// offer, its seller, its shelf, and who else acts.
    fn want(&self, tx: &mut Tx, id: &Id, actor: &str, kind: &str) -> Result<()> {
        let wanted = [
            self.0.accounts.want_mut(tx, &[id.0.clone(), actor.to_owned()]),
            self.0.bags.want_mut(tx, &[actor.to_owned()]),
            self.0.offers.want_mut(tx, std::slice::from_ref(id)),
            self.0.shelves.want_mut(tx, &[kind.to_owned()]),
        ];
        Ok(wanted.into_iter().collect::<Result<(), _>>()?)
    }
}

fn listed(id: &Id, offer: &Offer) -> Listed {
    let (seller, number) = id.clone();
    let Offer { kind, count, price } = offer.clone();
    Listed { seller, number, kind, count, price }
}
