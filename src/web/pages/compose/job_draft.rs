//! A job that is being composed: the cluster, the recipe, and the form as it is filled in.

use axum::extract::FromRequest;

use crate::auth::Permission;
use crate::error::AppError;
use crate::recipes::compose::ComposedJob;
use crate::recipes::form::SWEEP_ONLY;
use crate::recipes::question::{RecipeQuestion, RecipeQuestionKind};
use crate::recipes::request::RequestField;
use crate::recipes::script_import::{self, SbatchOption};
use crate::slurm::array_tasks::ArrayTaskSet;
use crate::web::http::extractors::{CurrentPerson, FormBody, PathParams, RequestContext};
use crate::web::pages::compose::compose_target::{self, ComposeTarget};
use crate::web::pages::compose::form::new_nonce;
use crate::web::pages::compose::form_values::{FormFields, JobFormValues};
use crate::web::pages::compose::recipe_lookup::{self, ChosenRecipe};
use crate::web::portal_state::PortalState;

/// A form that a browser sent, with any of its buttons.
#[derive(FromRequest)]
#[from_request(state(PortalState), rejection(AppError))]
pub struct ComposeRequest {
    context: RequestContext,
    me: CurrentPerson,
    /// The cluster's short name, and the recipe as the URL names it.
    #[from_request(via(PathParams))]
    path: (String, String),
    #[from_request(via(FormBody))]
    fields: FormFields,
}

pub struct JobDraft {
    pub target: ComposeTarget,
    pub chosen: ChosenRecipe,
    pub values: JobFormValues,
}

impl ComposeRequest {
    /// Checks that the person may use clusters, and finds what the form is for.
    pub async fn into_draft(self) -> Result<(RequestContext, CurrentPerson, JobDraft), AppError> {
        let Self { context, me, path: (slug, address), fields } = self;
        me.may(Permission::UseClusters)?;
        let target = compose_target::find_target(&context, &me, &slug).await?;
        let chosen = recipe_lookup::find_recipe(&context, &me, &address).await?;
        Ok((context, me, JobDraft { target, chosen, values: JobFormValues::parse(fields) }))
    }
}

impl JobDraft {
    /// A form with its initial answers.
    pub fn new(target: ComposeTarget, chosen: ChosenRecipe) -> Result<Self, AppError> {
        let answers = chosen.form.defaults(&target.compose_context);
        let values = JobFormValues { answers, nonce: new_nonce()?, ..JobFormValues::default() };
        Ok(Self { target, chosen, values })
    }

    /// The URL of the form.
    pub fn path(&self) -> String {
        format!("/compose/{}/{}", self.target.cluster().slug, self.chosen.address)
    }

    /// Composes the job from the form and the person's own changes.
    pub fn compose(&self) -> ComposedJob {
        self.compose_without(&[])
    }

    /// Like [`Self::compose`], with some of the changes reverted.
    pub fn compose_without(&self, changes: &[usize]) -> ComposedJob {
        self.values.compose(&self.chosen.form, &self.target.compose_context, changes)
    }

    /// The question that takes a whole script.
    pub fn script_question(&self) -> Option<&RecipeQuestion> {
        self.chosen.form.questions().find(|question| question.kind == RecipeQuestionKind::Script)
    }

    /// Sets the answers for these options. Returns the options that no question takes.
    pub fn fill_options(&mut self, options: &[SbatchOption]) -> Vec<SbatchOption> {
        let (form, answers) = (&self.chosen.form, &mut self.values.answers);
        script_import::fill_answers(form, answers, options, &self.target.compose_context)
    }

    /// Limits a job array to these tasks, keeping how many run at a time. False if the form has no field for that.
    pub fn fill_array_tasks(&mut self, tasks: &ArrayTaskSet) -> bool {
        let (key, text) = if self.compose().sweep.is_some() {
            (SWEEP_ONLY.to_owned(), tasks.to_string())
        } else {
            let question = self.chosen.form.find_setting(RequestField::Array);
            let Some(question) = question.filter(|question| question.kind == RecipeQuestionKind::Text) else {
                return false;
            };
            let before = self.values.answers.get(&question.key).and_then(|text| ArrayTaskSet::parse(text));
            let most = before.and_then(|before| before.max_running).map(|most| format!("%{most}"));
            (question.key.clone(), format!("{tasks}{}", most.unwrap_or_default()))
        };
        self.values.answers.insert(key, text);
        true
    }

    /// Turns a script into answers: its options, those that no question takes, and the rest of the script. Returns how
    /// many options no question takes.
    pub fn fill_from_script(&mut self, script: &str, options: &[SbatchOption]) -> usize {
        let rest: Vec<String> = self.fill_options(options).iter().map(script_import::format_option).collect();
        if let Some(key) = self.script_question().map(|question| question.key.clone()) {
            self.values.answers.insert(key, script_import::strip_directives(script));
        }
        if let Some(other) = self.chosen.form.find_setting(RequestField::Other) {
            self.values.answers.insert(other.key.clone(), rest.join("\n"));
        }
        rest.len()
    }
}
