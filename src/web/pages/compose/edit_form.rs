//! Buttons that change the form without submitting it: edit the script, revert changes, apply a suggestion, read a
//! script into the fields. Each shows the form again, with everything that was typed.

use crate::recipes::script_import;
use crate::web::HandlerResult;
use crate::web::http::page_frame::respond;
use crate::web::pages::compose::form::{ComposeNotice, ComposePageExtras, build_page};
use crate::web::pages::compose::form_values::HandEditedScript;
use crate::web::pages::compose::job_draft::{ComposeRequest, JobDraft};

/// Runs the action of the button.
pub async fn post(request: ComposeRequest) -> HandlerResult {
    let (context, me, mut draft) = request.into_draft().await?;
    let mut extras = ComposePageExtras::default();
    if draft.values.pressed_value("edit").is_some() {
        let script = draft.compose().final_script();
        draft.values.own.get_or_insert(HandEditedScript { base: script.clone(), text: script });
    }
    if draft.values.pressed_value("give-back").is_some() {
        draft.values.own = None;
    }
    if let Some(number) = draft.values.pressed_value("back").and_then(|text| text.parse().ok()) {
        revert_change(&mut draft, number);
    }
    if let Some(changes) = draft.values.pressed_value("take").map(str::to_owned) {
        for (key, value) in form_urlencoded::parse(changes.as_bytes()) {
            if draft.chosen.form.question(&key).is_some() {
                draft.values.answers.insert(key.into_owned(), value.into_owned());
            }
        }
    }
    if draft.values.pressed_value("read").is_some() {
        extras.notice = Some(read_script_into_form(&mut draft));
    }
    respond(&build_page(&context, &me, &draft, extras).await?)
}

/// Reverts one change and keeps the others.
fn revert_change(draft: &mut JobDraft, number: usize) {
    // First bring the script to what is shown, since that numbers the changes; then drop this one.
    for reverted in [&[][..], &[number]] {
        let job = draft.compose_without(reverted);
        if let Some(edited) = &job.edited {
            draft.values.own = Some(HandEditedScript { base: job.build_script(), text: edited.script() });
        }
    }
}

/// Turns the options of an imported script into answers.
fn read_script_into_form(draft: &mut JobDraft) -> ComposeNotice {
    let Some(question) = draft.script_question() else {
        return ComposeNotice::new("info", "No script to read", "Paste a script first.");
    };
    let script = draft.values.answers.get(&question.key).cloned().unwrap_or_default();
    let options = script_import::parse_directives(&script);
    if options.is_empty() {
        let text = "The script has no #SBATCH lines. Fill in the fields below instead.";
        return ComposeNotice::new("info", "No options found", text);
    }
    let count = options.len() - draft.fill_from_script(&script, &options);
    let text = match options.len() {
        1 if count == 1 => "The option was read into the form.".to_owned(),
        all if count == all => format!("All {all} options were read into the form."),
        all => format!("{count} of {all} options were read into the form. The rest are under Other sbatch options."),
    };
    ComposeNotice::new("ok", "Script options imported", text)
}
