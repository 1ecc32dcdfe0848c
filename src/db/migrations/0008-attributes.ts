/** Declared attributes of contacts: label and type by name. */
import { sql, type Kysely } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  const statements = [
    `create table attributes (
      id text primary key,
      workspace_id text not null,
      -- As in contacts; case counts.
      name text not null,
      name_folded text not null,
      label text,
      -- text, number, date, boolean or list.
      type text not null,
      -- Who declared it, as in activity: type and id.
      created_by text not null,
      created_by_id text,
      created_at bigint not null,
      updated_at bigint not null
    )`,
    'create unique index attributes_by_name on attributes (workspace_id, name)',
    'create index attributes_in_order on attributes (workspace_id, name_folded, id)',
  ]
  for (const statement of statements) await sql.raw(statement).execute(db)
}
