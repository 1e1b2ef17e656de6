//! Every route of the portal and its handler.

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::routing::{get, post};

use super::dashboard_origin;
use super::http::{assets, errors, event_stream, health, middleware, old_urls};
use super::pages::account::{self, devices, notification_settings, second_factor, ssh_keys, theme};
use super::pages::admin::{activity, people};
use super::pages::files::uploads;
use super::pages::groups::{
    self, fair_share, invitations, member_actions, reports, sharing, usage, usage_alerts, user_names,
};
use super::pages::jobs::{self, submissions};
use super::pages::sign_in::{self, join, password_reset, setup};
#[cfg(debug_assertions)]
use super::pages::styleguide;
use super::pages::{clusters, compose, dashboards, files, folders, help, home, notifications, recipes, terminals};
use crate::app::AppState;
use crate::web::portal_state::PortalState;

pub fn portal_router(state: PortalState) -> Router {
    let router = Router::new()
        .route("/", get(home::get))
        .route("/help", get(help::get))
        .route("/sign-in", get(sign_in::get).post(sign_in::post))
        .route("/sign-in/code", get(sign_in::get_code).post(sign_in::post_code))
        .route("/sign-out", post(sign_in::sign_out))
        .route("/setup/{token}", get(setup::get).post(setup::post))
        .route("/join/{token}", get(join::get).post(join::post))
        .route("/join/{token}/as-me", post(join::join_with_own_account))
        .route("/reset/{token}", get(password_reset::get).post(password_reset::post))
        .route("/account", get(account::get))
        .route("/account/name", post(account::change_display_name))
        .route("/account/password", post(account::change_password))
        .route("/account/second-factor", get(second_factor::get).post(second_factor::enable))
        .route("/account/second-factor/off", post(second_factor::disable))
        .route("/account/second-factor/codes", post(second_factor::renew_codes))
        .route("/account/devices", get(devices::list))
        .route("/account/devices/{id}/end", post(devices::sign_out))
        .route("/account/devices/end-all", post(devices::sign_out_everywhere))
        .route("/account/activity", get(activity::show_own))
        .route("/account/notifications", get(notification_settings::get).post(notification_settings::save_toast_kinds))
        .route("/account/notifications/webhook", post(notification_settings::set_webhook))
        .route("/account/notifications/webhook/test", post(notification_settings::test_webhook))
        .route("/account/notifications/webhook/secret", post(notification_settings::renew_secret))
        .route("/account/notifications/webhook/remove", post(notification_settings::remove_webhook))
        .route("/account/key", get(ssh_keys::get).post(ssh_keys::create))
        .route("/account/key/import", post(ssh_keys::import))
        .route("/account/key/replace", post(ssh_keys::replace))
        .route("/account/key/{id}/delete", post(ssh_keys::delete))
        .route("/account/key/{id}/unattended", post(ssh_keys::set_unattended))
        .route("/clusters", get(clusters::list::get).post(clusters::host_keys::add_cluster))
        .route("/clusters/new", get(clusters::admin::new).post(clusters::admin::check_new))
        .route("/clusters/new/edit", post(clusters::admin::edit_new))
        .route("/clusters/import", post(clusters::admin::import))
        .route("/clusters/{slug}", get(clusters::cluster_page::get))
        .route("/clusters/{slug}/panel", get(clusters::connect::show_panel))
        .route("/clusters/{slug}/user", post(clusters::connect::save_user))
        .route("/clusters/{slug}/connect", post(clusters::connect::connect))
        .route("/clusters/{slug}/answer", post(clusters::connect::answer_prompt))
        .route("/clusters/{slug}/cancel", post(clusters::connect::cancel_attempt))
        .route("/clusters/{slug}/disconnect", post(clusters::connect::disconnect))
        .route("/clusters/{slug}/hide", post(clusters::own_list::hide))
        .route("/clusters/{slug}/show", post(clusters::own_list::show))
        .route("/clusters/{slug}/move", post(clusters::own_list::reorder))
        .route("/clusters/{slug}/forget", get(clusters::forget::get).post(clusters::forget::post))
        .route("/clusters/{slug}/test-key", post(clusters::connect::test_key))
        .route("/clusters/{slug}/folders", get(folders::get).post(folders::create))
        .route("/clusters/{slug}/automation", get(clusters::automation::get))
        .route("/clusters/{slug}/automation/install", post(clusters::automation::install_wrapper))
        .route("/clusters/{slug}/automation/test", post(clusters::automation::start_test))
        .route("/clusters/{slug}/automation/disconnect", post(clusters::automation::disconnect))
        .route("/clusters/{slug}/settings", get(clusters::admin::show_settings).post(clusters::admin::update_settings))
        .route("/clusters/{slug}/file", post(clusters::admin::update_from_file))
        .route("/clusters/{slug}/export", get(clusters::admin::export))
        .route("/clusters/{slug}/retire", post(clusters::retirement::retire))
        .route("/clusters/{slug}/restore", post(clusters::retirement::restore))
        .route("/clusters/{slug}/remove", post(clusters::retirement::remove))
        .route("/clusters/{slug}/host-keys", get(clusters::host_keys::get).post(clusters::host_keys::pin_keys))
        .route("/clusters/{slug}/end-alarm", post(clusters::host_keys::end_alarm))
        .route("/automation/portolan-commands", get(clusters::automation::download_wrapper))
        .merge(job_routes())
        .merge(compose_routes())
        .merge(dashboard_routes())
        .merge(terminal_routes())
        .merge(file_routes())
        .merge(file_change_routes())
        .merge(transfer_routes())
        .merge(upload_routes())
        .merge(report_routes())
        .merge(usage_routes())
        .route("/groups", get(groups::list).post(groups::add))
        .route("/groups/{id}", get(groups::open))
        .route("/groups/{id}/members", get(groups::members))
        .route("/groups/{id}/name", post(groups::rename))
        .route("/groups/{id}/invitations", post(invitations::create))
        .route("/groups/{id}/invitations/{link}/revoke", post(invitations::revoke))
        .route("/groups/{id}/people/{person}/role", post(member_actions::set_role))
        .route("/groups/{id}/people/{person}/remove", post(member_actions::remove))
        .route("/people", get(people::list))
        .route("/people/{id}", get(people::get))
        .route("/people/{id}/disable", post(people::disable))
        .route("/people/{id}/enable", post(people::enable))
        .route("/people/{id}/delete", get(people::confirm_delete).post(people::delete))
        .route("/people/{id}/admin", post(people::set_admin))
        .route("/people/{id}/reset-link", post(people::create_reset_link))
        .route("/people/{id}/second-factor-off", post(people::remove_second_factor))
        .route("/activity", get(activity::show_all))
        .route("/activity.csv", get(activity::export_csv))
        .route("/theme", post(theme::post))
        .route("/events", get(event_stream::get))
        .route("/healthz", get(health::public))
        .route("/assets/{file}", get(assets::get));
    #[cfg(debug_assertions)]
    let router = router.route("/styleguide", get(styleguide::get));
    middleware::wrap_portal(
        router.fallback(old_urls::redirect_or_not_found).method_not_allowed_fallback(errors::method_not_allowed),
        &state,
    )
    .with_state(state)
}

/// Jobs and notifications.
fn job_routes() -> Router<PortalState> {
    Router::new()
        .route("/jobs", get(jobs::list::get))
        .route("/jobs/rows", get(jobs::list::get_rows))
        .route("/jobs/columns", post(jobs::list_options::choose_columns))
        .route("/jobs/refresh", post(jobs::list_options::refresh))
        .route("/jobs/older", post(jobs::list_options::load_older))
        .route("/jobs/act", post(jobs::actions::post))
        .route("/jobs/{slug}/{id}", get(jobs::job::get))
        .route("/jobs/{slug}/{id}/fragment", get(jobs::job::get_fragment))
        .route("/jobs/{slug}/{id}/script", get(jobs::job::get_script))
        .route("/jobs/{slug}/{id}/output", get(jobs::output::get))
        .route("/jobs/{slug}/{id}/output/more", get(jobs::output::get_new_lines))
        .route("/jobs/{slug}/{id}/output/before", get(jobs::output::get_earlier_lines))
        .route("/jobs/{slug}/{id}/output/download", get(jobs::download::get))
        .route("/jobs/{slug}/{id}/results", get(jobs::results::get))
        .route("/jobs/{slug}/{id}/results/archive", get(jobs::results::get_archive))
        .route("/submissions/{id}", get(submissions::get))
        .route("/submissions/{id}/fragment", get(submissions::fragment))
        .route("/submissions/{id}/again", post(submissions::retry))
        .route("/submissions/{id}/cancel", post(submissions::give_up))
        .route("/notifications", get(notifications::list))
        .route("/notifications/badge", get(notifications::show_bell))
        .route("/notifications/read", post(notifications::mark_read))
}

/// Composing jobs, and recipes. Scripts and recipes need a larger body limit than other forms.
fn compose_routes() -> Router<PortalState> {
    Router::new()
        .route("/compose", get(compose::choose_recipe::get))
        .route("/compose/example", get(compose::example::get))
        .route("/compose/again/{id}", get(compose::resubmit::show_submission))
        .route("/compose/{slug}/{recipe}", get(compose::form::get).post(compose::submit::post))
        .route("/compose/{slug}/{recipe}/preview", post(compose::script_panel::preview))
        .route("/compose/{slug}/{recipe}/edit", post(compose::edit_form::post))
        .route("/compose/{slug}/{recipe}/check", post(compose::submit_checks::post))
        .route("/compose/{slug}/{recipe}/estimate", post(compose::start_estimate::post))
        .route("/compose/{slug}/{recipe}/right-size", post(compose::right_size::post))
        .route("/compose/{slug}/{recipe}/save", post(recipes::save::show_form))
        .route("/jobs/{slug}/{id}/again", get(compose::resubmit::show_job))
        .route("/recipes", get(recipes::list::get).post(recipes::save::save))
        .route("/recipes/import", get(recipes::import::get).post(recipes::import::save))
        .route("/recipes/shipped/{name}/export", get(recipes::export::export_shipped))
        .route("/recipes/{id}", get(recipes::recipe::get))
        .route("/recipes/{id}/export", get(recipes::export::export_saved))
        .route("/recipes/{id}/change", get(recipes::edit::get).post(recipes::edit::save))
        .route("/recipes/{id}/file", post(recipes::edit::save_file))
        .route("/recipes/{id}/publish", post(recipes::recipe::publish))
        .route("/recipes/{id}/delete", post(recipes::recipe::delete))
        .layer(DefaultBodyLimit::max(compose::MAX_FORM_BYTES))
}

/// Files on clusters.
fn file_routes() -> Router<PortalState> {
    Router::new()
        .route("/files", get(files::index::get))
        .route("/files/{slug}", get(files::folder::get))
        .route("/files/{slug}/rows", get(files::folder::get_rows))
        .route("/files/{slug}/names", get(files::name_suggestions::get))
        .route("/files/{slug}/favourites", post(files::favourites::post))
        .route("/files/{slug}/download", get(files::download::get))
        .route(
            "/files/{slug}/archive",
            get(files::archive::get_or_post)
                .post(files::archive::get_or_post)
                .layer(DefaultBodyLimit::max(files::archive::MAX_FORM_BYTES)),
        )
        .route("/files/{slug}/view", get(files::view::get))
        .route("/files/{slug}/view/content", get(files::view::get_content))
        .route("/files/{slug}/raw", get(files::raw::get))
        .route("/files/{slug}/share", get(files::share::get).post(files::share::post))
        .route("/file-links", get(files::links::list))
        .route("/file-links/{link}/revoke", post(files::links::revoke))
        .route("/files/{slug}/storage", get(files::storage::get))
        .route("/files/{slug}/storage/place", get(files::storage::get_place))
        .route("/files/{slug}/storage/measure", post(files::storage::measure))
        .route("/files/{slug}/storage/refresh", post(files::storage::refresh))
}

/// Dashboards and their guest links. The dashboards themselves are served on their own origin, below.
fn dashboard_routes() -> Router<PortalState> {
    Router::new()
        .route("/dashboards", get(dashboards::list::get).post(dashboards::new::post))
        .route("/dashboards/new", get(dashboards::new::get))
        .route("/dashboards/found", get(dashboards::folder_suggestions::get))
        .route("/dashboards/guest-links", get(dashboards::guest_links::list))
        .route("/dashboards/guest-links/{share}/revoke", post(dashboards::guest_links::revoke))
        .route("/dashboards/{id}", get(dashboards::dashboard::get))
        .route("/dashboards/{id}/fragment", get(dashboards::dashboard::get_fragment))
        .route("/dashboards/{id}/open", get(dashboards::dashboard::open))
        .route("/dashboards/{id}/start", post(dashboards::actions::start))
        .route("/dashboards/{id}/wake", post(dashboards::actions::wake))
        .route("/dashboards/{id}/extend", post(dashboards::actions::extend))
        .route("/dashboards/{id}/stop", post(dashboards::actions::stop))
        .route("/dashboards/{id}/remove", post(dashboards::actions::delete))
        .route("/dashboards/{id}/settings", post(dashboards::actions::update_settings))
        .route("/dashboards/{id}/guest-links", post(dashboards::guest_links::create))
}

/// Shells on clusters in the browser.
fn terminal_routes() -> Router<PortalState> {
    Router::new()
        .route("/terminals", get(terminals::list))
        .route("/terminals/{id}", get(terminals::terminal::get))
        .route("/terminals/{id}/socket", get(terminals::socket::get))
        .route("/terminals/{id}/close", post(terminals::terminal::close))
        .route("/clusters/{slug}/terminal", post(terminals::open::on_cluster))
        .route("/jobs/{slug}/{id}/terminal", post(terminals::open::in_job))
}

/// Changing and editing files on a cluster. A text and a list of names need a larger body limit than other forms.
fn file_change_routes() -> Router<PortalState> {
    Router::new()
        .route("/files/{slug}/new-folder", post(files::changes::create_folder))
        .route("/files/{slug}/new-file", post(files::changes::create_file))
        .route("/files/{slug}/rename", post(files::changes::rename))
        .route("/files/{slug}/move", post(files::changes::move_entries))
        .route("/files/{slug}/permissions", post(files::permissions::post))
        .route("/files/{slug}/edit", get(files::edit::get).post(files::edit::save))
        .layer(DefaultBodyLimit::max(files::MAX_FORM_BYTES))
}

/// Background work on files. A selection of many rows needs a larger body limit than other forms.
fn transfer_routes() -> Router<PortalState> {
    Router::new()
        .route("/files/{slug}/compress", post(files::compress::post))
        .route("/files/{slug}/copy", post(files::copy::post))
        .route("/files/{slug}/delete", get(files::delete::get).post(files::delete::post))
        .route("/files/{slug}/extract", post(files::extract::post))
        .route("/files/{slug}/fetch", post(files::fetch::post))
        .route("/files/{slug}/transfers", get(files::folder_transfers::get))
        .route("/transfers", get(files::transfers::list))
        .route("/transfers/rows", get(files::transfers::get_rows))
        .route("/transfers/clear", post(files::transfers::clear))
        .route("/transfers/nav", get(files::transfers::get_nav_item))
        .route("/transfers/{id}/pause", post(files::transfers::pause))
        .route("/transfers/{id}/resume", post(files::transfers::resume))
        .route("/transfers/{id}/cancel", post(files::transfers::cancel))
        .route("/transfers/{id}/dismiss", post(files::transfers::dismiss))
        .layer(DefaultBodyLimit::max(MAX_SELECTION_BYTES))
}

/// 2,000 ticked rows with the longest names, each byte written as three.
const MAX_SELECTION_BYTES: usize = 5 * 1024 * 1024;

/// Uploads to clusters.
fn upload_routes() -> Router<PortalState> {
    Router::new()
        .route("/files/{slug}/upload-batch", post(uploads::batch::post))
        .route("/files/{slug}/uploads", get(uploads::unfinished::list))
        .route("/uploads", post(uploads::create).options(uploads::options))
        .route(
            "/uploads/{id}",
            post(uploads::post)
                .head(uploads::head)
                .patch(uploads::patch)
                .delete(uploads::delete)
                .options(uploads::options),
        )
        .route("/uploads/{id}/finish", post(uploads::unfinished::finish))
}

/// Reports of groups, guest links to them, and usage alerts for PIs.
fn report_routes() -> Router<PortalState> {
    Router::new()
        .route("/groups/{id}/report", get(reports::get))
        .route("/groups/{id}/reports", post(reports::freeze))
        .route("/groups/{id}/reports/{report}", get(reports::frozen::get))
        .route("/groups/{id}/reports/{report}/remove", post(reports::frozen::remove))
        .route("/groups/{id}/reports/{report}/guest-links", post(reports::frozen::create_link))
        .route("/groups/{id}/reports/{report}/guest-links/{link}/revoke", post(reports::frozen::revoke_link))
        .route("/groups/{id}/alerts", get(usage_alerts::get).post(usage_alerts::save))
}

/// Usage and allocations of groups.
fn usage_routes() -> Router<PortalState> {
    Router::new()
        .route("/groups/{id}/usage", get(usage::page::get))
        .route("/groups/{id}/usage/fragment", get(usage::page::show_fragment))
        .route("/groups/{id}/usage/fair-share", get(fair_share::get))
        .route("/groups/{id}/usage/fair-share.csv", get(fair_share::csv::fair_share_csv))
        .route("/groups/{id}/usage/fair-share/refresh", post(fair_share::refresh::post))
        .route("/groups/{id}/usage/queue.csv", get(fair_share::csv::queue_csv))
        .route("/groups/{id}/usage/storage.csv", get(fair_share::csv::storage_csv))
        .route("/groups/{id}/priority", get(fair_share::priority))
        .route("/groups/{id}/usage/jobs", get(usage::jobs_page::get))
        .route("/groups/{id}/usage/jobs/{slug}/{job}", get(usage::member_job::get))
        .route("/groups/{id}/usage/jobs/{slug}/{job}/accounting", get(usage::member_job::get_accounting))
        .route("/groups/{id}/user-names", get(user_names::get).post(user_names::save))
        .route("/groups/{id}/sharing", get(sharing::get))
        .route("/groups/{id}/sharing/own", post(sharing::save_own))
        .route("/groups/{id}/sharing/group", post(sharing::save_group))
        .route("/groups/{id}/usage/members.csv", get(usage::csv::members))
        .route("/groups/{id}/usage/accounts.csv", get(usage::csv::accounts))
        .route("/groups/{id}/usage/allocations.csv", get(usage::csv::allocations))
        .route("/groups/{id}/usage/kinds.csv", get(usage::csv::kinds))
        .route("/groups/{id}/usage/breakdown.csv", get(usage::csv::breakdown))
        .route("/groups/{id}/usage/days.csv", get(usage::csv::days))
        .route("/groups/{id}/usage/jobs.csv", get(usage::csv::jobs))
        .route("/groups/{id}/accounts", get(usage::settings::get).post(usage::settings::set_accounts))
        .route("/groups/{id}/allocations", post(usage::settings::add_allocation))
        .route("/groups/{id}/allocations/{allocation}", post(usage::settings::update_allocation))
        .route("/groups/{id}/allocations/{allocation}/remove", post(usage::settings::remove_allocation))
}

/// The separate origin that serves dashboards.
pub fn dashboard_router(app: AppState) -> Router {
    middleware::wrap_dashboards(dashboard_origin::routes(), &app).with_state(app)
}

/// The listener for monitoring: loopback only.
pub fn private_router(app: AppState) -> Router {
    let router = Router::new().route("/healthz", get(health::private)).route("/metrics", get(health::metrics));
    middleware::wrap_private(router).with_state(app)
}
