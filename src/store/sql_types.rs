//! Ids, times and days as columns: each is one INTEGER.

use sqlx::encode::IsNull;
use sqlx::error::BoxDynError;
use sqlx::sqlite::{SqliteArgumentsBuffer, SqliteTypeInfo, SqliteValueRef};
use sqlx::{Decode, Encode, Sqlite, Type};

use crate::clock::{Day, UnixTime};
use crate::domain::{
    AllocationId, ClusterId, DashboardId, DashboardRunId, GroupId, GuestLinkId, JobRowId, NotificationId,
    OneTimeLinkId, PersonId, RecipeId, ReportId, SessionId, SharedPathId, SshKeyId, SubmissionId, TransferId,
    UsageSourceId,
};

macro_rules! integer_columns {
    ($($name:ident)*) => {$(
        impl Type<Sqlite> for $name {
            fn type_info() -> SqliteTypeInfo {
                <i64 as Type<Sqlite>>::type_info()
            }

            fn compatible(column: &SqliteTypeInfo) -> bool {
                <i64 as Type<Sqlite>>::compatible(column)
            }
        }

        impl Encode<'_, Sqlite> for $name {
            fn encode_by_ref(&self, buffer: &mut SqliteArgumentsBuffer) -> Result<IsNull, BoxDynError> {
                Encode::<Sqlite>::encode_by_ref(&self.0, buffer)
            }
        }

        impl<'r> Decode<'r, Sqlite> for $name {
            fn decode(value: SqliteValueRef<'r>) -> Result<Self, BoxDynError> {
                <i64 as Decode<'r, Sqlite>>::decode(value).map(Self)
            }
        }
    )*};
}

integer_columns! {
    AllocationId ClusterId DashboardId DashboardRunId GroupId GuestLinkId JobRowId NotificationId OneTimeLinkId
    PersonId RecipeId ReportId SessionId SharedPathId SshKeyId SubmissionId TransferId UsageSourceId
    Day UnixTime
}
