/**
 * The index by recipient grows at 256 places, one a bucket, instead of at a random page for every message: with more
 * messages than the page cache has room for, each of them had to read that page first.
 */
import { sql, type Kysely } from 'kysely'
import { bucketOf } from '../../core/bucket.js'

const ROWS_AT_ONCE = 10_000

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`drop index messages_by_recipient`.execute(db)
  // `bucketOf` of the recipient in lower case.
  await db.schema.alterTable('messages').addColumn('recipient_bucket', 'integer').execute()
  await fill(db)
  // With the recipient itself at the end, so that those of others in the bucket are passed over within the index.
  await sql`create index messages_by_recipient on messages (workspace_id, recipient_bucket, id, lower(recipient))`.execute(
    db,
  )
}

async function fill(db: Kysely<unknown>): Promise<void> {
  for (let after = ''; ;) {
    const { rows } = await sql<{ id: string; recipient: string }>`
      select id, recipient from messages where id > ${after} order by id limit ${ROWS_AT_ONCE}`.execute(db)
    const ids = new Map<number, string[]>()
    for (const { id, recipient } of rows) {
      const bucket = bucketOf(recipient.toLowerCase())
      const others = ids.get(bucket)
      if (others) others.push(id)
      else ids.set(bucket, [id])
    }
    for (const [bucket, ofBucket] of ids)
      await sql`update messages set recipient_bucket = ${bucket} where id in (${sql.join(ofBucket)})`.execute(
        db,
      )
    const last = rows.at(-1)
    if (!last) return
    after = last.id
  }
}
