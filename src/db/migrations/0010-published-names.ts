/** Names that nodes have published: mail to a former one is still accepted, and doctor compares those in use. */
import { sql, type Kysely } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw(
      `create table published_names (
        -- Hostname of the node.
        node text not null,
        -- hostname, reports, return_path, dkim_zone or public_url.
        purpose text not null,
        name text not null,
        -- Start of the last run that used it.
        used_at bigint not null,
        primary key (node, purpose, name)
      )`,
    )
    .execute(db)
}
