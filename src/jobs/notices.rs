//! Telling people: that there is something new for someone goes out to all their open pages, and to their webhook.

use tokio::sync::broadcast;

use crate::domain::PersonId;

/// Rings for people who have new notices.
#[derive(Debug, Clone)]
pub struct Bell(broadcast::Sender<PersonId>);

impl Default for Bell {
    fn default() -> Self {
        Self(broadcast::channel(256).0)
    }
}

impl Bell {
    /// There is something new for someone.
    pub fn ring(&self, person: PersonId) {
        // Nobody may be listening.
        let _ = self.0.send(person);
    }

    /// Hears for whom there is something new.
    pub fn listen(&self) -> broadcast::Receiver<PersonId> {
        self.0.subscribe()
    }
}
