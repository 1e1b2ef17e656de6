//! Buttons that change the form without submitting it: edit the script, revert changes, apply a suggestion, read a
//! script into the fields. Each shows the form again, with everything that was typed.

use crate::auth::Permission;
use crate::recipes::question::QuestionKind;
use crate::recipes::request::RequestField;
use crate::recipes::script_import;
use crate::web::HandlerResult;
use crate::web::http::extractors::{CurrentPerson, FormBody, PathParams, RequestContext};
use crate::web::http::page_frame::respond;
use crate::web::pages::compose::compose_target::{self, ComposeTarget};
use crate::web::pages::compose::form::{ComposeNotice, ComposePageExtras, build_page};
use crate::web::pages::compose::form_values::{FormFields, HandEditedScript, JobFormValues};
use crate::web::pages::compose::recipe_lookup::{self, ChosenRecipe};

/// Runs the action of the button.
pub async fn post(
    context: RequestContext,
    me: CurrentPerson,
    PathParams((slug, address)): PathParams<(String, String)>,
    FormBody(fields): FormBody<FormFields>,
) -> HandlerResult {
    me.may(Permission::UseClusters)?;
    let spot = compose_target::find_target(&context, &me, &slug).await?;
    let chosen = recipe_lookup::find_recipe(&context, &me, &address).await?;
    let mut filled = JobFormValues::parse(fields);
    let mut shown = ComposePageExtras::default();
    if filled.pressed_value("edit").is_some() {
        let script = filled.compose(&chosen.form, &spot.compose_context, &[]).final_script();
        filled.own.get_or_insert(HandEditedScript { base: script.clone(), text: script });
    }
    if filled.pressed_value("give-back").is_some() {
        filled.own = None;
    }
    if let Some(number) = filled.pressed_value("back").and_then(|text| text.parse().ok()) {
        revert_change(&chosen, &mut filled, &spot, number);
    }
    if let Some(changes) = filled.pressed_value("take").map(str::to_owned) {
        for (key, value) in form_urlencoded::parse(changes.as_bytes()) {
            if chosen.form.question(&key).is_some() {
                filled.answers.insert(key.into_owned(), value.into_owned());
            }
        }
    }
    if filled.pressed_value("read").is_some() {
        shown.notice = Some(read_script_into_form(&chosen, &mut filled, &spot));
    }
    respond(&build_page(&context, &me, &spot, &chosen, &filled, shown).await?)
}

/// Reverts one change and keeps the others.
fn revert_change(chosen: &ChosenRecipe, filled: &mut JobFormValues, spot: &ComposeTarget, number: usize) {
    // First bring the script to what is shown, since that numbers the changes; then drop this one.
    for back in [&[][..], &[number]] {
        let job = filled.compose(&chosen.form, &spot.compose_context, back);
        if let Some(edited) = &job.edited {
            filled.own = Some(HandEditedScript { base: job.build_script(), text: edited.script() });
        }
    }
}

/// Turns the options of an imported script into answers.
fn read_script_into_form(chosen: &ChosenRecipe, filled: &mut JobFormValues, spot: &ComposeTarget) -> ComposeNotice {
    let question = chosen.form.questions().find(|question| question.kind == QuestionKind::Script);
    let Some(question) = question else {
        return build_notice("info", "There is no script to read", "Paste one first.");
    };
    let script = filled.answers.get(&question.key).cloned().unwrap_or_default();
    let options = script_import::parse_directives(&script);
    if options.is_empty() {
        let text = "The script has no lines that begin with #SBATCH. Answer the questions below instead.";
        return build_notice("info", "Nothing to read", text);
    }
    let rest = script_import::fill_answers(&chosen.form, &mut filled.answers, &options, &spot.compose_context);
    filled.answers.insert(question.key.clone(), script_import::strip_directives(&script));
    if let Some(other) = chosen.form.find_setting(RequestField::Other) {
        let lines: Vec<String> = rest.iter().map(script_import::format_option).collect();
        filled.answers.insert(other.key.clone(), lines.join("\n"));
    }
    let count = options.len() - rest.len();
    let text = format!(
        "{count} of its {} options are in the fields now; the others stand under further options.",
        options.len()
    );
    build_notice("ok", "The script was read", &text)
}

fn build_notice(kind: &'static str, title: &str, text: &str) -> ComposeNotice {
    ComposeNotice { kind, title: title.to_owned(), text: text.to_owned(), said: String::new(), accounts: Vec::new() }
}
