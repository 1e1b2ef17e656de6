//! Buttons of the form that change it without sending it: edit the script, take changes back, take a proposal over, read
//! a script into the fields. Each shows the form again, with everything that was typed.

use super::super::Answer;
use super::super::extract::{Context, Form, Me, Path};
use super::super::page::show;
use super::chosen::{self, Chosen};
use super::filled::{Fields, Filled, Job, Own};
use super::form::{Notice, Shown, page};
use super::place::{self, Spot};
use crate::auth::Permission;
use crate::recipes::question::Kind;
use crate::recipes::read_back;
use crate::recipes::request::Sets;

/// Carries out what the button says.
pub async fn post(
    context: Context,
    me: Me,
    Path((slug, address)): Path<(String, String)>,
    Form(fields): Form<Fields>,
) -> Answer {
    me.may(Permission::UseClusters)?;
    let spot = place::one(&context, &me, &slug).await?;
    let chosen = chosen::find(&context, &me, &address).await?;
    let mut filled = Filled::read(fields);
    let mut shown = Shown::default();
    if filled.pressed("edit").is_some() {
        let script = Job::of(&chosen.form, &filled, &spot.place, &[]).script();
        filled.own.get_or_insert(Own { base: script.clone(), text: script });
    }
    if filled.pressed("give-back").is_some() {
        filled.own = None;
    }
    if let Some(number) = filled.pressed("back").and_then(|text| text.parse().ok()) {
        take_back(&chosen, &mut filled, &spot, number);
    }
    if let Some(changes) = filled.pressed("take").map(str::to_owned) {
        for (key, value) in form_urlencoded::parse(changes.as_bytes()) {
            if chosen.form.question(&key).is_some() {
                filled.answers.insert(key.into_owned(), value.into_owned());
            }
        }
    }
    if filled.pressed("read").is_some() {
        shown.notice = Some(read(&chosen, &mut filled, &spot));
    }
    show(&page(&context, &me, &spot, &chosen, &filled, shown).await?)
}

/// A change goes, the others stay.
fn take_back(chosen: &Chosen, filled: &mut Filled, spot: &Spot, number: usize) {
    // First to what is shown, whose changes are counted; then without that one.
    for back in [&[][..], &[number]] {
        let job = Job::of(&chosen.form, filled, &spot.place, back);
        if let Some(edited) = &job.edited {
            filled.own = Some(Own { base: job.composed.script(), text: edited.script() });
        }
    }
}

/// The options of a script that was brought along become answers.
fn read(chosen: &Chosen, filled: &mut Filled, spot: &Spot) -> Notice {
    let question = chosen.form.questions().find(|question| question.kind == Kind::Script);
    let Some(question) = question else {
        return notice("info", "There is no script to read", "Paste one first.");
    };
    let script = filled.answers.get(&question.key).cloned().unwrap_or_default();
    let options = read_back::directives(&script);
    if options.is_empty() {
        let text =
            "The script has no lines that begin with #SBATCH. Answer the questions below instead.";
        return notice("info", "Nothing to read", text);
    }
    let rest = read_back::take(&chosen.form, &mut filled.answers, &options, &spot.place);
    filled.answers.insert(question.key.clone(), read_back::without_directives(&script));
    if let Some(other) = chosen.form.that_sets(Sets::Other) {
        let lines: Vec<String> = rest.iter().map(read_back::written).collect();
        filled.answers.insert(other.key.clone(), lines.join("\n"));
    }
    let count = options.len() - rest.len();
    let text = format!(
        "{count} of its {} options are in the fields now; the others stand under further options.",
        options.len()
    );
    notice("ok", "The script was read", &text)
}

fn notice(kind: &'static str, title: &str, text: &str) -> Notice {
    Notice {
        kind,
        title: title.to_owned(),
        text: text.to_owned(),
        said: String::new(),
        accounts: Vec::new(),
    }
}
