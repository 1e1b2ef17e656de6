//! What a group's allocation went into. Figures are read over the viewer's own connection, a day at a time, counted
//! here, and kept; pages add them up. What counts as what stands in `docs/FIGURES.md`.

pub mod alerts;
pub mod demand;
mod desk;
mod due;
pub mod figures;
mod forecast;
pub mod frozen;
mod ledger;
mod manage;
mod periods;
mod read;
pub mod report;
pub mod report_links;
pub mod share_line;
pub mod shares;
mod sums;
pub mod tally;
pub mod units;
mod view;
mod waits;

pub use desk::{Parts, Reader, Usage};
pub use forecast::{Forecast, forecast};
pub use ledger::{Ledger, Roll};
pub use manage::{Grant, NotSet, Offer};
pub use periods::period_of;
pub use read::write_sheet;
pub use sums::{Outcome, Sums, hours};
pub use units::{Measure, SiteUnit, Unit};
pub use view::{AccountView, Facts, Person, View};
pub use waits::Waits;
