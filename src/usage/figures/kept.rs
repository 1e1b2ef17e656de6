//! Figures that were added up, for as long as all that they were made of stays the same. A year of a busy group is tens of
//! thousands of sums, and a page is looked at far more often than anything is read.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

use super::{Choice, Figures, figures};
use crate::clock::Day;
use crate::domain::{ClusterId, GroupId, PersonId};
use crate::usage::desk::{Usage, lock};
use crate::usage::ledger::Ledger;
use crate::usage::view::{AccountView, Person, View};

/// So many are kept at most.
const MOST: usize = 64;

/// Who looked at what, of which group.
type Key = (PersonId, GroupId, Choice);

/// What was added up.
#[derive(Default)]
pub struct Kept(Mutex<HashMap<Key, Made>>);

struct Made {
    from: Source,
    figures: Arc<Figures>,
}

/// All that figures are made of, besides what was chosen.
struct Source {
    leads: bool,
    people: Arc<HashMap<(ClusterId, String), Person>>,
    accounts: Vec<AccountSource>,
}

struct AccountSource {
    cluster: ClusterId,
    slug: String,
    title: String,
    account: String,
    own_user: Option<String>,
    today: Day,
    /// Not held: what is no longer looked at may leave the memory. What was read is never changed, only replaced, so the
    /// same place is the same content, and a place is not given to others while this points to it.
    ledgers: Vec<Weak<Ledger>>,
}

impl Source {
    fn of(view: &View) -> Self {
        let (leads, people) = (view.leads, view.people.clone());
        Self { leads, people, accounts: view.accounts.iter().map(AccountSource::of).collect() }
    }

    fn is(&self, view: &View) -> bool {
        let same = |(one, account): (&AccountSource, &AccountView)| one.is(account);
        self.leads == view.leads
            && self.accounts.len() == view.accounts.len()
            && self.accounts.iter().zip(&view.accounts).all(same)
            && self.people == view.people
    }
}

impl AccountSource {
    fn of(account: &AccountView) -> Self {
        let facts = &account.facts;
        Self {
            cluster: facts.cluster,
            slug: facts.slug.clone(),
            title: facts.title.clone(),
            account: facts.account.clone(),
            own_user: facts.own_user.clone(),
            today: account.today,
            ledgers: account.ledgers.iter().map(Arc::downgrade).collect(),
        }
    }

    fn is(&self, account: &AccountView) -> bool {
        let facts = &account.facts;
        let same =
            |(one, ledger): (&Weak<Ledger>, &Arc<Ledger>)| one.as_ptr() == Arc::as_ptr(ledger);
        self.cluster == facts.cluster
            && self.slug == facts.slug
            && self.title == facts.title
            && self.account == facts.account
            && self.own_user == facts.own_user
            && self.today == account.today
            && self.ledgers.len() == account.ledgers.len()
            && self.ledgers.iter().zip(&account.ledgers).all(same)
    }
}

impl Kept {
    pub(super) fn get(&self, view: &View, choice: &Choice) -> Arc<Figures> {
        let key = (view.me, view.group, choice.clone());
        if let Some(made) = lock(&self.0).get(&key).filter(|made| made.from.is(view)) {
            return made.figures.clone();
        }
        let made = Made { from: Source::of(view), figures: Arc::new(figures(view, choice)) };
        let found = made.figures.clone();
        let mut all = lock(&self.0);
        if all.len() >= MOST {
            all.clear();
        }
        all.insert(key, made);
        found
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        lock(&self.0).len()
    }
}

impl Usage {
    /// The figures of a choice.
    pub fn figures(&self, view: &View, choice: &Choice) -> Arc<Figures> {
        self.0.figures.get(view, choice)
    }
}
