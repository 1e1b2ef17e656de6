//! What a group's allocation was spent on. Figures are read once for a group, over a member's own connection, one day at
//! a time, totalled here, and stored; pages add them up. `docs/FIGURES.md` defines each figure.

mod account_usage;
pub mod alerts;
mod breakdown;
pub mod daily_totals;
pub mod demand;
pub mod fair_share;
pub mod fair_share_chart;
pub mod figures;
mod forecast;
pub mod frozen_reports;
mod group_usage;
mod job_lookup;
mod job_sharing;
mod periods;
mod readers;
pub mod report;
mod reread;
mod schedule;
mod service;
mod settings;
mod totals;
pub mod units;
mod user_names;
mod wait_histogram;
mod worker;

pub use account_usage::{AccountUsage, UserDayUsage};
pub use breakdown::{BreakdownSums, UsageBreakdown};
pub use forecast::{AllocationForecast, forecast_allocation};
pub use group_usage::{GroupAccountContext, GroupAccountUsage, GroupMemberName, GroupUsage};
pub use job_lookup::UsageJobRecord;
pub use periods::allocation_period;
pub use service::UsageService;
pub use settings::{AllocationInput, GroupAccountChoices, UsageSettingsError};
pub use totals::{UsageJobOutcome, UsageTotals, hours};
pub use units::{AllocationUnit, SiteUnit, UsageMeasure};
pub use user_names::{SetUserNameError, UnlinkedUserName, UserNames};
pub use wait_histogram::WaitHistogram;
pub use worker::{SavedUsageDay, save_daily_totals};
