//! Recipes that people keep: saving, new versions, publishing to a group, deleting. Every text is read and checked
//! before it is written, and every right is decided again inside the transaction.

use crate::auth::activity::{ActivityDetails, ActivityEvent, Actor, record};
use crate::auth::{AuthError, Ownership, Permission, Viewer};
use crate::core::Core;
use crate::domain::{DisplayName, GroupId, NameError, PersonId, RecipeId};
use crate::recipes::recipe::{Recipe, RecipeBlock, RecipeError};
use crate::store::recipes::{self, NewRecipeVersion};
pub use crate::store::recipes::{RecipeVersion, SavedRecipeRow};
use crate::store::{self, DbConnection, StoreError};

/// So many recipes may one person keep.
const MOST_RECIPES: i64 = 200;
/// So many versions may a recipe have.
const MOST_VERSIONS: i64 = 1000;

/// Why nothing was saved.
#[derive(Debug, thiserror::Error)]
pub enum SaveRecipeError {
    /// The text is no recipe.
    #[error("{0}")]
    Unreadable(#[from] RecipeError),
    #[error("The title: {0}")]
    Title(NameError),
    /// What is said of the new version.
    #[error("{0}")]
    Note(NameError),
    #[error("You keep {MOST_RECIPES} recipes already. Delete some that you no longer need.")]
    TooMany,
    /// There are enough versions.
    #[error("This recipe has {MOST_VERSIONS} versions already. Save it as a new recipe instead.")]
    TooManyVersions,
    /// Another version was written in between.
    #[error("Someone saved version {0} meanwhile. Look at it first, then make your changes there.")]
    Outdated(i64),
    /// Rights, or no such recipe.
    #[error(transparent)]
    Auth(#[from] AuthError),
    /// The database; nothing was written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Whose a recipe is.
pub fn recipe_ownership(kept: &SavedRecipeRow) -> Ownership {
    Ownership { owner: kept.owner(), group: kept.group() }
}

/// What is to be saved.
#[derive(Debug, Clone, Copy)]
pub struct RecipeDraft<'a> {
    /// The complete recipe file.
    pub text: &'a str,
    /// What is new in it.
    pub note: &'a str,
}

/// All recipes that people keep.
#[derive(Clone)]
pub struct SavedRecipes {
    core: Core,
}

impl SavedRecipes {
    pub const fn new(core: Core) -> Self {
        Self { core }
    }

    /// Those that someone can use: their own and those of their groups; all groups' for administrators.
    pub async fn list(&self, viewer: &Viewer) -> Result<Vec<SavedRecipeRow>, StoreError> {
        let mut db = self.core.store.read().await?;
        let mut found = recipes::list(&mut db, viewer.id, viewer.is_admin).await?;
        found.retain(|kept| viewer.may(Permission::UseRecipe(recipe_ownership(kept))).is_ok());
        Ok(found)
    }

    /// One that someone can use, in a version, or the newest. One that was deleted is there only by its version, for
    /// jobs that were made with it.
    pub async fn get(
        &self,
        viewer: &Viewer,
        id: RecipeId,
        version: Option<i64>,
    ) -> Result<Option<(SavedRecipeRow, RecipeVersion)>, StoreError> {
        let mut db = self.core.store.read().await?;
        let kept = recipes::get(&mut db, id).await?;
        let kept = kept
            .filter(|kept| viewer.may(Permission::UseRecipe(recipe_ownership(kept))).is_ok())
            .filter(|kept| version.is_some() || !kept.is_archived());
        let Some(kept) = kept else { return Ok(None) };
        let found = recipes::find_version(&mut db, id, version.unwrap_or(kept.version)).await?;
        Ok(found.map(|version| (kept, version)))
    }

    /// All versions, newest first, without their texts.
    pub async fn versions(&self, id: RecipeId) -> Result<Vec<RecipeVersion>, StoreError> {
        recipes::list_versions(&mut *self.core.store.read().await?, id).await
    }

    /// Saves a new recipe: its owner's alone, or published at once.
    pub async fn save(
        &self,
        actor: &Actor,
        draft: RecipeDraft<'_>,
        group: Option<GroupId>,
        blocks: &[RecipeBlock],
    ) -> Result<RecipeId, SaveRecipeError> {
        let title = parse_title(draft.text, blocks)?;
        let owner = actor.id.ok_or(AuthError::Denied)?;
        let now = self.core.clock.now();
        let mut tx = self.core.store.write().await?;
        self.core.auth.authorise(&mut tx, actor, Permission::UseClusters).await?;
        if let Some(group) = group {
            let whose = Ownership { owner: Some(owner), group: None };
            self.core
                .auth
                .authorise(&mut tx, actor, Permission::PublishRecipe(whose, group))
                .await?;
        }
        if recipes::count_for_person(&mut tx, owner).await? >= MOST_RECIPES {
            return Err(SaveRecipeError::TooMany);
        }
        let id = recipes::add(&mut tx, owner, group, &title, now).await?;
        self.save_version(&mut tx, (id, 1), owner, draft).await?;
        let about = ActivityDetails { subject: title.as_str(), ..ActivityDetails::default() };
        record(&mut tx, actor, ActivityEvent::RecipeSaved, about, now).await?;
        if let Some(group) = group {
            self.record_published(&mut tx, actor, title.as_str(), group).await?;
        }
        store::commit(tx).await?;
        Ok(id)
    }

    /// Saves a new version, made from version `was`.
    pub async fn update(
        &self,
        actor: &Actor,
        (id, was): (RecipeId, i64),
        draft: RecipeDraft<'_>,
        blocks: &[RecipeBlock],
    ) -> Result<i64, SaveRecipeError> {
        let title = parse_title(draft.text, blocks)?;
        let author = actor.id.ok_or(AuthError::Denied)?;
        let mut tx = self.core.store.write().await?;
        let kept = self.find_editable(&mut tx, actor, id, Permission::ChangeRecipe).await?;
        if kept.version != was {
            return Err(SaveRecipeError::Outdated(kept.version));
        }
        if kept.version >= MOST_VERSIONS {
            return Err(SaveRecipeError::TooManyVersions);
        }
        let version = kept.version + 1;
        self.save_version(&mut tx, (id, version), author, draft).await?;
        recipes::set_title(&mut tx, id, &title).await?;
        let detail = format!("version {version}");
        let about = ActivityDetails {
            person: owner_if_other(actor, &kept),
            subject: title.as_str(),
            detail: &detail,
        };
        record(&mut tx, actor, ActivityEvent::RecipeChanged, about, self.core.clock.now()).await?;
        store::commit(tx).await?;
        Ok(version)
    }

    /// Publishes a recipe to a group, instead of the one it was published to.
    pub async fn publish(
        &self,
        actor: &Actor,
        id: RecipeId,
        group: GroupId,
    ) -> Result<(), SaveRecipeError> {
        let mut tx = self.core.store.write().await?;
        let kept = self.find_editable(&mut tx, actor, id, Permission::ChangeRecipe).await?;
        self.core
            .auth
            .authorise(&mut tx, actor, Permission::PublishRecipe(recipe_ownership(&kept), group))
            .await?;
        recipes::set_group(&mut tx, id, Some(group)).await?;
        self.record_published(&mut tx, actor, &kept.title, group).await?;
        Ok(store::commit(tx).await?)
    }

    /// Makes a recipe its owner's alone again. One whose owner is gone belongs to the group for good.
    pub async fn withdraw(&self, actor: &Actor, id: RecipeId) -> Result<(), SaveRecipeError> {
        let mut tx = self.core.store.write().await?;
        let kept = self.find_editable(&mut tx, actor, id, Permission::ChangeRecipe).await?;
        if kept.owner().is_none() {
            return Err(AuthError::Denied.into());
        }
        recipes::set_group(&mut tx, id, None).await?;
        let detail = kept.group_name.clone().unwrap_or_default();
        let about = ActivityDetails {
            person: owner_if_other(actor, &kept),
            subject: &kept.title,
            detail: &detail,
        };
        record(&mut tx, actor, ActivityEvent::RecipeWithdrawn, about, self.core.clock.now())
            .await?;
        Ok(store::commit(tx).await?)
    }

    /// Deletes a recipe; jobs that were made with it still know it.
    pub async fn delete(&self, actor: &Actor, id: RecipeId) -> Result<(), SaveRecipeError> {
        let now = self.core.clock.now();
        let mut tx = self.core.store.write().await?;
        let kept = self.find_editable(&mut tx, actor, id, Permission::ChangeRecipe).await?;
        recipes::archive(&mut tx, id, now).await?;
        let about = ActivityDetails {
            person: owner_if_other(actor, &kept),
            subject: &kept.title,
            ..ActivityDetails::default()
        };
        record(&mut tx, actor, ActivityEvent::RecipeDeleted, about, now).await?;
        Ok(store::commit(tx).await?)
    }

    /// A recipe to be changed. What someone cannot even see is not there for them.
    async fn find_editable(
        &self,
        db: &mut DbConnection,
        actor: &Actor,
        id: RecipeId,
        action: fn(Ownership) -> Permission,
    ) -> Result<SavedRecipeRow, SaveRecipeError> {
        let kept = recipes::get(db, id).await?.filter(|kept| !kept.is_archived());
        let kept = kept.ok_or(AuthError::NotFound)?;
        match self
            .core
            .auth
            .authorise(db, actor, Permission::UseRecipe(recipe_ownership(&kept)))
            .await
        {
            Err(AuthError::Denied) => return Err(AuthError::NotFound.into()),
            other => other?,
        }
        self.core.auth.authorise(db, actor, action(recipe_ownership(&kept))).await?;
        Ok(kept)
    }

    async fn save_version(
        &self,
        db: &mut DbConnection,
        (recipe, version): (RecipeId, i64),
        author: PersonId,
        draft: RecipeDraft<'_>,
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

    async fn record_published(
        &self,
        db: &mut DbConnection,
        actor: &Actor,
        title: &str,
        group: GroupId,
    ) -> Result<(), SaveRecipeError> {
        let group = store::groups::get(db, group).await?.ok_or(AuthError::NotFound)?;
        let about =
            ActivityDetails { subject: title, detail: &group.name, ..ActivityDetails::default() };
        Ok(record(db, actor, ActivityEvent::RecipePublished, about, self.core.clock.now()).await?)
    }
}

/// The owner, if someone else does something to their recipe.
fn owner_if_other(actor: &Actor, kept: &SavedRecipeRow) -> Option<PersonId> {
    kept.owner().filter(|owner| actor.id != Some(*owner))
}

/// Reads a text; its title is shown in lists, so it must be fit for them.
fn parse_title(text: &str, blocks: &[RecipeBlock]) -> Result<DisplayName, SaveRecipeError> {
    let recipe = Recipe::parse(text, blocks)?;
    recipe.title.parse().map_err(SaveRecipeError::Title)
}
