//! The pages: the only room that names `axum` and `askama`. All routes are in the tables below.

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::routing::{get, post};
use axum::serve::ListenerExt as _;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::app::AppState;

mod account;
mod activity;
mod assets;
mod boards;
mod boards_origin;
mod clusters;
mod compose;
mod cookies;
mod csv;
mod devices;
mod errors;
mod events;
mod extract;
mod flash;
mod folders;
mod form;
mod groups;
mod health;
mod home;
mod invitations;
mod jobs;
mod join;
mod keys;
mod layers;
mod notice_settings;
mod notices;
mod once;
mod page;
mod people;
mod recipes;
mod reports;
mod reset;
mod second_factor;
mod setup;
mod sign_in;
mod standing;
mod streams;
#[cfg(debug_assertions)]
mod styleguide;
mod submissions;
mod theme;
mod usage;
mod usage_alerts;
mod visitor;

pub use compose::place::Spots;
pub use home::{Facts as HomeFacts, Visits, Ways as HomeWays};
pub use jobs::Places;
pub use streams::Streams;
pub use usage::Sheets as UseSheets;

/// What every handler answers with.
type Answer = Result<axum::response::Response, crate::error::AppError>;

/// The portal.
pub fn portal(app: AppState) -> Router {
    let router = Router::new()
        .route("/", get(home::get))
        .route("/sign-in", get(sign_in::get).post(sign_in::post))
        .route("/sign-in/code", get(sign_in::get_code).post(sign_in::post_code))
        .route("/sign-out", post(sign_in::sign_out))
        .route("/setup/{token}", get(setup::get).post(setup::post))
        .route("/join/{token}", get(join::get).post(join::post))
        .route("/join/{token}/as-me", post(join::post_as_me))
        .route("/reset/{token}", get(reset::get).post(reset::post))
        .route("/account", get(account::get))
        .route("/account/name", post(account::post_name))
        .route("/account/password", post(account::post_password))
        .route("/account/second-factor", get(second_factor::get).post(second_factor::turn_on))
        .route("/account/second-factor/off", post(second_factor::turn_off))
        .route("/account/second-factor/codes", post(second_factor::renew_codes))
        .route("/account/devices", get(devices::get))
        .route("/account/devices/{id}/end", post(devices::end))
        .route("/account/devices/end-all", post(devices::end_all))
        .route("/account/activity", get(activity::own))
        .route("/account/notices", get(notice_settings::get).post(notice_settings::choose))
        .route("/account/notices/webhook", post(notice_settings::set_webhook))
        .route("/account/notices/webhook/test", post(notice_settings::test_webhook))
        .route("/account/notices/webhook/secret", post(notice_settings::renew_secret))
        .route("/account/notices/webhook/remove", post(notice_settings::remove_webhook))
        .route("/account/key", get(keys::get).post(keys::make))
        .route("/account/key/import", post(keys::import))
        .route("/account/key/replace", post(keys::replace))
        .route("/account/key/{id}/delete", post(keys::delete))
        .route("/account/key/{id}/unattended", post(keys::unattended))
        .route("/clusters", get(clusters::list::get).post(clusters::host_keys::add))
        .route("/clusters/new", get(clusters::admin::new).post(clusters::admin::check))
        .route("/clusters/new/edit", post(clusters::admin::edit))
        .route("/clusters/import", post(clusters::admin::import))
        .route("/clusters/{slug}", get(clusters::way_in::get))
        .route("/clusters/{slug}/panel", get(clusters::connect::panel))
        .route("/clusters/{slug}/user", post(clusters::connect::user))
        .route("/clusters/{slug}/connect", post(clusters::connect::connect))
        .route("/clusters/{slug}/answer", post(clusters::connect::answer))
        .route("/clusters/{slug}/give-up", post(clusters::connect::give_up))
        .route("/clusters/{slug}/disconnect", post(clusters::connect::disconnect))
        .route("/clusters/{slug}/test-key", post(clusters::connect::test_key))
        .route("/clusters/{slug}/folders", get(folders::get).post(folders::make))
        .route("/clusters/{slug}/automation", get(clusters::automation::get))
        .route("/clusters/{slug}/automation/install", post(clusters::automation::install))
        .route("/clusters/{slug}/automation/test", post(clusters::automation::test))
        .route("/clusters/{slug}/automation/disconnect", post(clusters::automation::disconnect))
        .route(
            "/clusters/{slug}/settings",
            get(clusters::admin::settings).post(clusters::admin::change),
        )
        .route("/clusters/{slug}/file", post(clusters::admin::change_file))
        .route("/clusters/{slug}/export", get(clusters::admin::export))
        .route("/clusters/{slug}/retire", post(clusters::admin::retire))
        .route("/clusters/{slug}/restore", post(clusters::admin::restore))
        .route("/clusters/{slug}/remove", post(clusters::admin::remove))
        .route(
            "/clusters/{slug}/host-keys",
            get(clusters::host_keys::get).post(clusters::host_keys::pin),
        )
        .route("/clusters/{slug}/end-alarm", post(clusters::host_keys::end_alarm))
        .route("/automation/portolan-commands", get(clusters::automation::wrapper))
        .merge(job_routes())
        .merge(compose_routes())
        .merge(board_routes())
        .merge(report_routes())
        .merge(usage_routes())
        .route("/groups", get(groups::list).post(groups::add))
        .route("/groups/{id}", get(groups::get))
        .route("/groups/{id}/name", post(groups::rename))
        .route("/groups/{id}/invitations", post(invitations::add))
        .route("/groups/{id}/invitations/{link}/revoke", post(invitations::revoke))
        .route("/groups/{id}/people/{person}/role", post(groups::set_role))
        .route("/groups/{id}/people/{person}/remove", post(groups::remove))
        .route("/people", get(people::list))
        .route("/people/{id}", get(people::get))
        .route("/people/{id}/disable", post(people::disable))
        .route("/people/{id}/enable", post(people::enable))
        .route("/people/{id}/admin", post(people::set_admin))
        .route("/people/{id}/reset-link", post(people::reset_link))
        .route("/people/{id}/second-factor-off", post(people::remove_second_factor))
        .route("/activity", get(activity::all))
        .route("/activity.csv", get(activity::export))
        .route("/theme", post(theme::post))
        .route("/events", get(events::get))
        .route("/healthz", get(health::public))
        .route("/assets/{file}", get(assets::get));
    #[cfg(debug_assertions)]
    let router = router.route("/styleguide", get(styleguide::get));
    layers::portal(
        router.fallback(errors::not_found).method_not_allowed_fallback(errors::method_not_allowed),
        &app,
    )
    .with_state(app)
}

/// Jobs and what people are told of them.
fn job_routes() -> Router<AppState> {
    Router::new()
        .route("/jobs", get(jobs::list::get))
        .route("/jobs/rows", get(jobs::list::rows))
        .route("/jobs/columns", post(jobs::choices::choose_columns))
        .route("/jobs/refresh", post(jobs::choices::refresh))
        .route("/jobs/older", post(jobs::choices::older))
        .route("/jobs/act", post(jobs::act::post))
        .route("/jobs/{slug}/{id}", get(jobs::job::get))
        .route("/jobs/{slug}/{id}/part", get(jobs::job::part))
        .route("/jobs/{slug}/{id}/script", get(jobs::job::script))
        .route("/jobs/{slug}/{id}/output", get(jobs::output::get))
        .route("/jobs/{slug}/{id}/output/more", get(jobs::output::more))
        .route("/jobs/{slug}/{id}/output/before", get(jobs::output::before))
        .route("/jobs/{slug}/{id}/output/download", get(jobs::download::get))
        .route("/submissions/{id}", get(submissions::get))
        .route("/submissions/{id}/part", get(submissions::part))
        .route("/submissions/{id}/again", post(submissions::again))
        .route("/submissions/{id}/give-up", post(submissions::give_up))
        .route("/notices", get(notices::get))
        .route("/notices/bell", get(notices::bell))
        .route("/notices/read", post(notices::read))
}

/// Composing jobs, and the recipes for that. Scripts and recipes are longer than what other forms hold.
fn compose_routes() -> Router<AppState> {
    Router::new()
        .route("/compose", get(compose::cards::get))
        .route("/compose/again/{id}", get(compose::again::submission))
        .route("/compose/{slug}/{recipe}", get(compose::form::get).post(compose::submit::post))
        .route("/compose/{slug}/{recipe}/preview", post(compose::panel::preview))
        .route("/compose/{slug}/{recipe}/rework", post(compose::rework::post))
        .route("/compose/{slug}/{recipe}/estimate", post(compose::estimate::post))
        .route("/compose/{slug}/{recipe}/sizes", get(compose::sizes::get))
        .route("/compose/{slug}/{recipe}/keep", post(recipes::keep::ask))
        .route("/jobs/{slug}/{id}/again", get(compose::again::job))
        .route("/recipes", get(recipes::list::get).post(recipes::keep::save))
        .route("/recipes/import", get(recipes::import::get).post(recipes::import::save))
        .route("/recipes/shipped/{name}/export", get(recipes::export::shipped))
        .route("/recipes/{id}", get(recipes::recipe::get))
        .route("/recipes/{id}/export", get(recipes::export::kept))
        .route("/recipes/{id}/change", get(recipes::change::get).post(recipes::change::save))
        .route("/recipes/{id}/file", post(recipes::change::save_file))
        .route("/recipes/{id}/publish", post(recipes::recipe::publish))
        .route("/recipes/{id}/delete", post(recipes::recipe::delete))
        .layer(DefaultBodyLimit::max(compose::LARGEST_FORM))
}

/// Dashboards and the links to them. What runs in a dashboard is on its own origin, below.
fn board_routes() -> Router<AppState> {
    Router::new()
        .route("/boards", get(boards::list::get).post(boards::new::post))
        .route("/boards/new", get(boards::new::get))
        .route("/boards/found", get(boards::found::get))
        .route("/boards/links", get(boards::links::list))
        .route("/boards/links/{share}/revoke", post(boards::links::revoke))
        .route("/boards/{id}", get(boards::board::get))
        .route("/boards/{id}/part", get(boards::board::part))
        .route("/boards/{id}/open", get(boards::board::open))
        .route("/boards/{id}/start", post(boards::act::start))
        .route("/boards/{id}/wake", post(boards::act::wake))
        .route("/boards/{id}/extend", post(boards::act::extend))
        .route("/boards/{id}/stop", post(boards::act::stop))
        .route("/boards/{id}/remove", post(boards::act::remove))
        .route("/boards/{id}/settings", post(boards::act::settings))
        .route("/boards/{id}/links", post(boards::links::add))
}

/// Monthly reports of groups, links to them, and what groups' leaders are told.
fn report_routes() -> Router<AppState> {
    Router::new()
        .route("/groups/{id}/report", get(reports::get))
        .route("/groups/{id}/reports", post(reports::freeze))
        .route("/groups/{id}/reports/{report}", get(reports::frozen::get))
        .route("/groups/{id}/reports/{report}/remove", post(reports::frozen::remove))
        .route("/groups/{id}/reports/{report}/links", post(reports::frozen::share))
        .route("/groups/{id}/reports/{report}/links/{link}/revoke", post(reports::frozen::revoke))
        .route("/groups/{id}/alerts", get(usage_alerts::get).post(usage_alerts::set))
}

/// What groups used, and what was granted to them.
fn usage_routes() -> Router<AppState> {
    Router::new()
        .route("/groups/{id}/use", get(usage::page::get))
        .route("/groups/{id}/use/part", get(usage::page::part))
        .route("/groups/{id}/use/standing", get(standing::get))
        .route("/groups/{id}/use/fair-share.csv", get(standing::csv::shares))
        .route("/groups/{id}/use/queue.csv", get(standing::csv::queue))
        .route("/groups/{id}/use/storage.csv", get(standing::csv::folders))
        .route("/groups/{id}/priority", get(standing::priority))
        .route("/groups/{id}/use/jobs", get(usage::jobs::get))
        .route("/groups/{id}/use/members.csv", get(usage::csv::members))
        .route("/groups/{id}/use/accounts.csv", get(usage::csv::accounts))
        .route("/groups/{id}/use/allocations.csv", get(usage::csv::allocations))
        .route("/groups/{id}/use/kinds.csv", get(usage::csv::kinds))
        .route("/groups/{id}/use/days.csv", get(usage::csv::days))
        .route("/groups/{id}/use/jobs.csv", get(usage::csv::jobs))
        .route(
            "/groups/{id}/accounts",
            get(usage::settings::get).post(usage::settings::set_accounts),
        )
        .route("/groups/{id}/allocations", post(usage::settings::add))
        .route("/groups/{id}/allocations/{allocation}", post(usage::settings::change))
        .route("/groups/{id}/allocations/{allocation}/remove", post(usage::settings::remove))
}

/// The separate origin on which dashboards are shown.
pub fn boards(app: AppState) -> Router {
    layers::boards(boards_origin::routes(), &app).with_state(app)
}

/// The listener for machines that watch the portal: loopback only.
pub fn private(app: AppState) -> Router {
    let router = Router::new()
        .route("/healthz", get(health::private))
        .route("/metrics", get(health::metrics));
    layers::private(router).with_state(app)
}

/// Serves a router until told to stop, then lets its requests finish.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    stop: CancellationToken,
) -> std::io::Result<()> {
    let service = router.into_make_service_with_connect_info::<std::net::SocketAddr>();
    // Small answers go out at once; a failure only makes them later.
    let listener = listener.tap_io(|stream| {
        let _ = stream.set_nodelay(true);
    });
    axum::serve(listener, service).with_graceful_shutdown(stop.cancelled_owned()).await
}
