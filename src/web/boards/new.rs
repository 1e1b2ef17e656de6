//! A new dashboard: what kind, where, what it shows, for how long. Nothing here asks a cluster.

use askama::Template;

use super::super::compose::filled::Fields;
use super::super::compose::form::nonce;
use super::super::compose::place::Spot;
use super::super::extract::{Context, Form, Me, Query};
use super::super::flash::see_other;
use super::super::form::Problems;
use super::super::page::{PROBLEMS, Page, Section, show, show_with};
use super::super::{Answer, assets};
use super::where_to::{self, Ground, NotHere};
use super::{address, cost, fault, minute_choices};
use crate::auth::Permission;
use crate::boards::wish::MOST_PLACES;
use crate::boards::{Kind, NotDone, Wish};
use crate::error::AppError;

/// No more of what was typed is shown again.
const LONGEST_SHOWN: usize = 1000;

#[derive(Template)]
#[template(path = "boards/new.html")]
struct NewPage {
    page: Page,
    picker_js: &'static str,
    problems: Problems,
    asked: Asked,
    spots: Vec<Spot>,
    /// Clusters that cannot be chosen.
    others: Vec<NotHere>,
    spot: Option<Spot>,
    /// Folders of earlier dashboards, and whether they are chosen.
    recent: Vec<(String, bool)>,
    /// Where folders that could be shown are asked for.
    found: String,
    /// What stands in the fields.
    inputs: Vec<String>,
    can_add: bool,
    /// Whether the last field was just added.
    is_added: bool,
    minutes: Vec<(String, String, bool)>,
    /// Projects that can pay: value, label, whether it is chosen.
    accounts: Vec<(String, String, bool)>,
    cost: String,
}

/// What a form or a link asks for.
#[derive(Debug, Clone)]
struct Asked {
    kind: Kind,
    cluster: String,
    places: Vec<String>,
    minutes: String,
    account: Option<String>,
    title: String,
    nonce: String,
    /// Whether the form only wants to be shown again.
    is_look: bool,
    /// Whether one more field is wanted.
    is_add: bool,
}

impl Asked {
    fn read(fields: Fields) -> Self {
        let mut asked = Self {
            kind: Kind::TensorBoard,
            cluster: String::new(),
            places: Vec::new(),
            minutes: String::new(),
            account: None,
            title: String::new(),
            nonce: String::new(),
            is_look: false,
            is_add: false,
        };
        for (name, value) in fields {
            match name.as_str() {
                "kind" => asked.kind = value.parse().unwrap_or(Kind::TensorBoard),
                "cluster" => asked.cluster = value,
                "place" => {
                    let value = value.trim();
                    let is_new = !asked.places.iter().any(|known| known == value);
                    if !value.is_empty() && is_new && asked.places.len() <= MOST_PLACES {
                        asked.places.push(value.to_owned());
                    }
                }
                "minutes" => asked.minutes = value,
                "account" => asked.account = Some(value),
                "title" => asked.title = value,
                "form" => asked.nonce = value,
                "look" => asked.is_look = true,
                "add" => (asked.is_look, asked.is_add) = (true, true),
                _ => {}
            }
        }
        asked
    }
}

/// The form. Links may bring along what it begins with; nothing happens by itself.
pub async fn get(context: Context, me: Me, Query(fields): Query<Fields>) -> Answer {
    me.may(Permission::UseClusters)?;
    let asked = Asked { nonce: nonce()?, is_add: false, ..Asked::read(fields) };
    show(&page(&context, &me, asked, Problems::default()).await?)
}

/// Makes it and goes to its page; or shows the form again.
pub async fn post(context: Context, me: Me, Form(fields): Form<Fields>) -> Answer {
    me.may(Permission::UseClusters)?;
    let asked = Asked::read(fields);
    if asked.is_look {
        return show(&page(&context, &me, asked, Problems::default()).await?);
    }
    let (spots, _) = where_to::clusters(&context, &me).await?;
    let Some(spot) = spots.iter().find(|spot| spot.cluster.slug == asked.cluster) else {
        let problems = Problems::one("cluster", "Choose one of your clusters.");
        return show_with(PROBLEMS, &page(&context, &me, asked, problems).await?);
    };
    let ground = Ground::of(&context, &me, spot).await?;
    let mut problems = Problems::default();
    let minutes = minutes(&asked, spot, &mut problems);
    let account = account(&asked, spot, &mut problems);
    let wish = Wish {
        person: me.0.person.id,
        cluster: spot.cluster.id,
        kind: asked.kind,
        title: asked.title.clone(),
        places: full(&asked.places, &ground),
        minutes,
        account,
        form: asked.nonce.clone(),
    };
    if problems.is_empty() {
        match context.app.dashboards.open(&me.actor(&context), &wish).await {
            Ok(id) => return Ok(see_other(&address(id))),
            Err(error) => problem(error, &mut problems)?,
        }
    }
    show_with(PROBLEMS, &page(&context, &me, asked, problems).await?)
}

/// Why there is no dashboard, at the field that it is about.
fn problem(error: NotDone, problems: &mut Problems) -> Result<(), AppError> {
    let field = match &error {
        NotDone::Place(_) => "place",
        NotDone::Minutes => "minutes",
        NotDone::Title(_) => "title",
        NotDone::NoWay | NotDone::TooMany => "cluster",
        _ => return Err(fault(error)),
    };
    problems.add(field, error);
    Ok(())
}

/// The full paths, each once. One that begins with a variable that is not known stays as it is, and is refused.
fn full(places: &[String], ground: &Ground) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for place in places {
        let path = ground.names.expand(place).unwrap_or_else(|| place.clone());
        let path = match path.trim_end_matches('/') {
            "" => path,
            bare => bare.to_owned(),
        };
        if !found.contains(&path) {
            found.push(path);
        }
    }
    found
}

fn minutes(asked: &Asked, spot: &Spot, problems: &mut Problems) -> u32 {
    let (least, most, _) = where_to::times(spot);
    let minutes = asked.minutes.trim().parse().ok();
    let fit = minutes.filter(|minutes| (least..=most).contains(minutes));
    if fit.is_none() {
        problems.add("minutes", "Choose one of the times offered.");
    }
    fit.unwrap_or(least)
}

fn account(asked: &Asked, spot: &Spot, problems: &mut Problems) -> String {
    let account = asked.account.clone().unwrap_or_default();
    if !account.is_empty() && !spot.place.accounts.iter().any(|one| one.name == account) {
        problems.add("account", "Choose one of your projects.");
        return String::new();
    }
    account
}

async fn page(
    context: &Context,
    me: &Me,
    asked: Asked,
    problems: Problems,
) -> Result<NewPage, AppError> {
    let (spots, others) = where_to::clusters(context, me).await?;
    let wanted = spots.iter().find(|spot| spot.cluster.slug == asked.cluster);
    let spot = wanted.or(spots.first()).cloned();
    let mut page = NewPage {
        page: Page::for_person(context, &me.0, "New dashboard", Section::Boards),
        picker_js: assets::address("picker.js"),
        problems,
        spots,
        others,
        recent: Vec::new(),
        found: String::new(),
        inputs: asked.places.clone(),
        can_add: false,
        is_added: asked.is_add,
        minutes: Vec::new(),
        accounts: Vec::new(),
        cost: String::new(),
        spot: None,
        asked,
    };
    let Some(spot) = spot else { return Ok(page) };
    let (least, most, usual) = where_to::times(&spot);
    let minutes = page.asked.minutes.trim().parse().unwrap_or(usual);
    page.minutes = minute_choices(most, least, minutes);
    let account = match page.asked.account.clone() {
        Some(account) => account,
        None => where_to::usual_account(context, me, &spot).await?,
    };
    page.accounts = accounts(&spot, &account);
    page.cost = cost::words(page.asked.kind, minutes.clamp(least, most), &account, &spot.place);
    let recent = where_to::recent(context, me, &spot, page.asked.kind).await?;
    let names = Ground::of(context, me, &spot).await?.names;
    let is_chosen = |path: &String| page.asked.places.contains(path);
    page.recent = recent.into_iter().map(|path| (path.clone(), is_chosen(&path))).collect();
    // What is ticked among the recent ones needs no field; what a link brings is written as forms like it.
    let recent = &page.recent;
    page.inputs.retain(|input| !recent.iter().any(|(path, _)| path == input));
    page.inputs.iter_mut().for_each(|input| {
        *input = names.abbreviate(&input.chars().take(LONGEST_SHOWN).collect::<String>());
    });
    if page.inputs.is_empty() || page.asked.is_add {
        page.inputs.push(String::new());
    }
    page.can_add = page.asked.kind == Kind::TensorBoard && page.inputs.len() < MOST_PLACES;
    page.found = found_address(&spot, &page.asked);
    page.spot = Some(spot);
    Ok(page)
}

/// Where folders that could be shown are asked for; what is chosen already is not offered again.
fn found_address(spot: &Spot, asked: &Asked) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.append_pair("cluster", &spot.cluster.slug).append_pair("kind", asked.kind.as_str());
    for place in &asked.places {
        query.append_pair("place", place);
    }
    format!("/boards/found?{}", query.finish())
}

/// The projects to choose from, where there is a choice.
fn accounts(spot: &Spot, chosen: &str) -> Vec<(String, String, bool)> {
    let all = &spot.place.accounts;
    let is_required = spot.place.site.jobs.account_required;
    if all.is_empty() || (all.len() == 1 && !is_required) {
        return Vec::new();
    }
    let mut options: Vec<(String, String, bool)> =
        all.iter().map(|one| (one.name.clone(), one.name.clone(), one.name == chosen)).collect();
    if !is_required {
        let label = "The cluster's own choice".to_owned();
        options.insert(0, (String::new(), label, chosen.is_empty()));
    }
    options
}

impl NewPage {
    /// What the first field is called.
    fn place_label(&self) -> &'static str {
        match self.asked.kind {
            Kind::TensorBoard => "Folder with event files",
            Kind::Mlflow => "Tracking folder (mlruns) or database file (mlflow.db)",
        }
    }

    /// What can be chosen with the button beside it.
    fn pick(&self) -> &'static str {
        match self.asked.kind {
            Kind::TensorBoard => "folder",
            Kind::Mlflow => "any",
        }
    }

    fn is(&self, kind: Kind) -> bool {
        self.asked.kind == kind
    }
}
