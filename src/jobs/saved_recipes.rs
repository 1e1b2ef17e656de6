//! Saved recipes: saving, new versions, publishing to a group, deleting. Every recipe is parsed and checked before it
//! is stored, and every permission is checked again inside the transaction.

use crate::auth::activity::{ActivityDetails, ActivityEventKind, Actor, record};
use crate::auth::{AuthError, Permission, SharedItemOwnership, Viewer};
use crate::core::Core;
use crate::domain::{DisplayName, GroupId, NameError, PersonId, RecipeId};
use crate::recipes::recipe::{Recipe, RecipeError, SharedRecipeBlock};
use crate::store::recipes::{self, NewRecipeVersion};
pub use crate::store::recipes::{RecipeVersion, SavedRecipeRow};
use crate::store::{self, DbConnection, StoreError, Transaction};

/// The most recipes that one person can save.
const MOST_RECIPES: i64 = 200;
/// The most versions of one recipe.
const MOST_VERSIONS: i64 = 1000;

#[derive(Debug, thiserror::Error)]
pub enum SaveRecipeError {
    /// The text is not a valid recipe.
    #[error("{0}")]
    Unreadable(#[from] RecipeError),
    #[error("Title: {0}")]
    Title(NameError),
    /// The note on the new version is invalid.
    #[error("{0}")]
    Note(NameError),
    #[error("You already have {MOST_RECIPES} recipes. Delete some that you no longer need.")]
    TooMany,
    #[error("This recipe already has {MOST_VERSIONS} versions. Save it as a new recipe instead.")]
    TooManyVersions,
    /// Someone saved another version in the meantime.
    #[error("Someone else saved version {0} while you were editing. Open it and make your changes there.")]
    Outdated(i64),
    /// Not permitted, or no such recipe.
    #[error(transparent)]
    Auth(#[from] AuthError),
    /// The database failed; nothing was saved.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Who owns a recipe.
pub fn recipe_ownership(saved: &SavedRecipeRow) -> SharedItemOwnership {
    SharedItemOwnership { owner: saved.owner(), group: saved.group() }
}

#[derive(Debug, Clone, Copy)]
pub struct RecipeVersionDraft<'a> {
    /// The complete recipe file.
    pub text: &'a str,
    /// What changed in this version.
    pub note: &'a str,
}

#[derive(Clone)]
pub struct SavedRecipeService {
    core: Core,
}

impl SavedRecipeService {
    pub const fn new(core: Core) -> Self {
        Self { core }
    }

    /// The recipes someone can use: their own and their groups'; for administrators, those of all groups.
    pub async fn list(&self, viewer: &Viewer) -> Result<Vec<SavedRecipeRow>, StoreError> {
        let mut db = self.core.store.read().await?;
        let mut found = recipes::list(&mut db, viewer.id, viewer.is_admin).await?;
        found.retain(|saved| viewer.may(Permission::UseRecipe(recipe_ownership(saved))).is_ok());
        Ok(found)
    }

    /// A recipe that someone can use, in one version or the newest. A deleted recipe is only found by version, for
    /// jobs that were made with it.
    pub async fn get(
        &self,
        viewer: &Viewer,
        id: RecipeId,
        version: Option<i64>,
    ) -> Result<Option<(SavedRecipeRow, RecipeVersion)>, StoreError> {
        let mut db = self.core.store.read().await?;
        let saved = recipes::get(&mut db, id)
            .await?
            .filter(|saved| viewer.may(Permission::UseRecipe(recipe_ownership(saved))).is_ok())
            .filter(|saved| version.is_some() || !saved.is_archived());
        let Some(saved) = saved else { return Ok(None) };
        let found = recipes::find_version(&mut db, id, version.unwrap_or(saved.version)).await?;
        Ok(found.map(|version| (saved, version)))
    }

    /// All versions, newest first, without their text.
    pub async fn versions(&self, id: RecipeId) -> Result<Vec<RecipeVersion>, StoreError> {
        recipes::list_versions(&mut *self.core.store.read().await?, id).await
    }

    /// Saves a new recipe, private or published at once.
    pub async fn save(
        &self,
        actor: &Actor,
        draft: RecipeVersionDraft<'_>,
        group: Option<GroupId>,
        blocks: &[SharedRecipeBlock],
    ) -> Result<RecipeId, SaveRecipeError> {
        let title = parse_title(draft.text, blocks)?;
        let owner = actor.id.ok_or(AuthError::Denied)?;
        let now = self.core.clock.now();
        let mut tx = self.core.store.write().await?;
        self.core.auth.authorise(&mut tx, actor, Permission::UseClusters).await?;
        if let Some(group) = group {
            let ownership = SharedItemOwnership { owner: Some(owner), group: None };
            self.core.auth.authorise(&mut tx, actor, Permission::PublishRecipe(ownership, group)).await?;
        }
        if recipes::count_for_person(&mut tx, owner).await? >= MOST_RECIPES {
            return Err(SaveRecipeError::TooMany);
        }
        let id = recipes::add(&mut tx, owner, group, &title, now).await?;
        self.save_version(&mut tx, (id, 1), owner, draft).await?;
        let about = ActivityDetails { subject: title.as_str(), ..ActivityDetails::default() };
        record(&mut tx, actor, ActivityEventKind::RecipeSaved, about, now).await?;
        if let Some(group) = group {
            self.record_published(&mut tx, actor, title.as_str(), group).await?;
        }
        store::commit(tx).await?;
        Ok(id)
    }

    /// Saves a new version based on version `base_version`.
    pub async fn update(
        &self,
        actor: &Actor,
        (id, base_version): (RecipeId, i64),
        draft: RecipeVersionDraft<'_>,
        blocks: &[SharedRecipeBlock],
    ) -> Result<i64, SaveRecipeError> {
        let title = parse_title(draft.text, blocks)?;
        let author = actor.id.ok_or(AuthError::Denied)?;
        let mut tx = self.core.store.write().await?;
        let mut saved = self.find_editable(&mut tx, actor, id).await?;
        if saved.version != base_version {
            return Err(SaveRecipeError::Outdated(saved.version));
        }
        if saved.version >= MOST_VERSIONS {
            return Err(SaveRecipeError::TooManyVersions);
        }
        let version = saved.version + 1;
        self.save_version(&mut tx, (id, version), author, draft).await?;
        recipes::set_title(&mut tx, id, &title).await?;
        let detail = format!("version {version}");
        saved.title = title.as_str().to_owned();
        self.commit_change(tx, actor, ActivityEventKind::RecipeChanged, &saved, &detail).await?;
        Ok(version)
    }

    /// Publishes a recipe to a group, replacing the group it was published to before.
    pub async fn publish(&self, actor: &Actor, id: RecipeId, group: GroupId) -> Result<(), SaveRecipeError> {
        let mut tx = self.core.store.write().await?;
        let saved = self.find_editable(&mut tx, actor, id).await?;
        self.core.auth.authorise(&mut tx, actor, Permission::PublishRecipe(recipe_ownership(&saved), group)).await?;
        recipes::set_group(&mut tx, id, Some(group)).await?;
        self.record_published(&mut tx, actor, &saved.title, group).await?;
        Ok(store::commit(tx).await?)
    }

    /// Makes a recipe private again. If its owner is gone, it stays with the group.
    pub async fn withdraw(&self, actor: &Actor, id: RecipeId) -> Result<(), SaveRecipeError> {
        let mut tx = self.core.store.write().await?;
        let saved = self.find_editable(&mut tx, actor, id).await?;
        if saved.owner().is_none() {
            return Err(AuthError::Denied.into());
        }
        recipes::set_group(&mut tx, id, None).await?;
        let detail = saved.group_name.clone().unwrap_or_default();
        self.commit_change(tx, actor, ActivityEventKind::RecipeWithdrawn, &saved, &detail).await
    }

    /// Deletes a recipe; jobs that were made with it keep the reference.
    pub async fn delete(&self, actor: &Actor, id: RecipeId) -> Result<(), SaveRecipeError> {
        let mut tx = self.core.store.write().await?;
        let saved = self.find_editable(&mut tx, actor, id).await?;
        recipes::archive(&mut tx, id, self.core.clock.now()).await?;
        self.commit_change(tx, actor, ActivityEventKind::RecipeDeleted, &saved, "").await
    }

    /// Loads a recipe for editing. A recipe that someone cannot see does not exist for them.
    async fn find_editable(
        &self,
        db: &mut DbConnection,
        actor: &Actor,
        id: RecipeId,
    ) -> Result<SavedRecipeRow, SaveRecipeError> {
        let saved = recipes::get(db, id).await?.filter(|saved| !saved.is_archived()).ok_or(AuthError::NotFound)?;
        match self.core.auth.authorise(db, actor, Permission::UseRecipe(recipe_ownership(&saved))).await {
            Err(AuthError::Denied) => return Err(AuthError::NotFound.into()),
            other => other?,
        }
        self.core.auth.authorise(db, actor, Permission::ChangeRecipe(recipe_ownership(&saved))).await?;
        Ok(saved)
    }

    async fn save_version(
        &self,
        db: &mut DbConnection,
        (recipe, version): (RecipeId, i64),
        author: PersonId,
        draft: RecipeVersionDraft<'_>,
    ) -> Result<(), SaveRecipeError> {
        let note: Option<DisplayName> = match draft.note.trim() {
            "" => None,
            note => Some(note.parse().map_err(SaveRecipeError::Note)?),
        };
        let person = store::people::get(db, author).await?.ok_or(AuthError::Denied)?;
        let new = NewRecipeVersion {
            recipe,
            version,
            text: draft.text,
            author,
            author_name: &person.display_name,
            note: note.as_ref().map_or("", DisplayName::as_str),
        };
        Ok(recipes::add_version(db, &new, self.core.clock.now()).await?)
    }

    /// Records the change in the same transaction; its owner is named if someone else makes it.
    async fn commit_change(
        &self,
        mut tx: Transaction,
        actor: &Actor,
        event: ActivityEventKind,
        saved: &SavedRecipeRow,
        detail: &str,
    ) -> Result<(), SaveRecipeError> {
        let person = saved.owner().filter(|owner| actor.id != Some(*owner));
        let about = ActivityDetails { person, subject: &saved.title, detail };
        record(&mut tx, actor, event, about, self.core.clock.now()).await?;
        Ok(store::commit(tx).await?)
    }

    async fn record_published(
        &self,
        db: &mut DbConnection,
        actor: &Actor,
        title: &str,
        group: GroupId,
    ) -> Result<(), SaveRecipeError> {
        let group = store::groups::get(db, group).await?.ok_or(AuthError::NotFound)?;
        let about = ActivityDetails { subject: title, detail: &group.name, ..ActivityDetails::default() };
        Ok(record(db, actor, ActivityEventKind::RecipePublished, about, self.core.clock.now()).await?)
    }
}

/// Parses a recipe and returns its title, which must be fit for lists.
fn parse_title(text: &str, blocks: &[SharedRecipeBlock]) -> Result<DisplayName, SaveRecipeError> {
    let recipe = Recipe::parse(text, blocks)?;
    recipe.title.parse().map_err(SaveRecipeError::Title)
}
