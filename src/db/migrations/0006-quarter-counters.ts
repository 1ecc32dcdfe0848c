/** Counters by quarter hour, so that reports count days of any time zone. Days of before this migration stay UTC days. */
import { sql, type Kysely } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of [
    `create table quarter_counters (
      workspace_id text not null,
      -- all, campaign, tag or domain.
      dimension text not null,
      starts_at bigint not null,
      -- As in daily_group_counters; '' for all.
      value text not null,
      accepted bigint default 0 not null,
      campaign_sends bigint default 0 not null,
      api_sends bigint default 0 not null,
      delivered bigint default 0 not null,
      opens bigint default 0 not null,
      clicks bigint default 0 not null,
      bounces bigint default 0 not null,
      complaints bigint default 0 not null,
      constraint quarter_counters_pk primary key (workspace_id, dimension, starts_at, value)
    )`,
    'create index quarter_counters_by_start on quarter_counters (starts_at)',
  ])
    await sql.raw(statement).execute(db)
}
