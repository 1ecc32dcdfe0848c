/**
 * Each workspace gets a sandbox, and what sandbox keys have sent so far moves there; sending limits are counted in a row for
 * each window.
 *
 * A domain or suppression that a sandbox key has made stays live: live mail has been sent by it, or has been withheld for it,
 * and nothing tells them from others.
 */
import { sql, type Kysely } from 'kysely'
import { uuidOf } from '../../core/ids.js'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sandboxes(db)
  await scheduledMail(db)
  await sendingUsage(db)
}

async function sandboxes(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('sandboxes')
    // What owns the sandbox's data: the workspace_id or owner of its rows.
    .addColumn('id', 'text', c => c.primaryKey())
    .addColumn('workspace_id', 'text', c => c.notNull().unique())
    .execute()
  const { rows } = await sql<{ id: string }>`select id from workspaces`.execute(db)
  for (const { id } of rows)
    await sql`insert into sandboxes (id, workspace_id) values (${uuidOf(`sandbox of ${id}`)}, ${id})`.execute(
      db,
    )
  await db.schema
    .alterTable('domains')
    .addColumn('is_sandbox', 'integer', c => c.notNull().defaultTo(0))
    .execute()
  await sql`
    update message_contents
    set workspace_id = (select id from sandboxes where sandboxes.workspace_id = message_contents.workspace_id)
    where id in (select content_id from messages where is_sandbox = 1)`.execute(db)
  for (const table of ['messages', 'email_batches', 'bounces', 'conversions', 'product_views', 'events']) {
    const owner = sql.ref(`${table}.workspace_id`)
    await sql`
      update ${sql.table(table)}
      set workspace_id = (select id from sandboxes where sandboxes.workspace_id = ${owner})
      where is_sandbox = 1 and workspace_id in (select workspace_id from sandboxes)`.execute(db)
  }
}

/** Of a sandbox nothing is queued: here its scheduled mail waits for its time. */
async function scheduledMail(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('sandbox_schedule')
    .addColumn('message_id', 'text', c => c.primaryKey().references('messages.id').onDelete('cascade'))
    .addColumn('due_at', 'bigint', c => c.notNull())
    .execute()
  await db.schema.createIndex('sandbox_schedule_due').on('sandbox_schedule').column('due_at').execute()
  await sql`
    insert into sandbox_schedule (message_id, due_at)
    select messages.id, scheduled_at from messages
    inner join message_contents on message_contents.id = content_id
    where is_sandbox = 1 and status = 'scheduled' and scheduled_at is not null`.execute(db)
}

/** A window that has passed keeps its row: when the clock is set back, what was used in it is not given again. */
async function sendingUsage(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('sending_usage').renameTo('sending_usage_before').execute()
  await db.schema
    .createTable('sending_usage')
    .addColumn('workspace_id', 'text', c => c.notNull())
    .addColumn('window_kind', 'text', c => c.notNull())
    .addColumn('window_start', 'bigint', c => c.notNull())
    .addColumn('accepted', 'integer', c => c.notNull())
    .addPrimaryKeyConstraint('sending_usage_windows_pk', ['workspace_id', 'window_kind', 'window_start'])
    .execute()
  await sql`
    insert into sending_usage (workspace_id, window_kind, window_start, accepted)
    select workspace_id, window_kind, window_start, accepted from sending_usage_before`.execute(db)
  await db.schema.dropTable('sending_usage_before').execute()
}
