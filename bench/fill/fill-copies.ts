/**
 * Multiplies a filled history by SQL alone: each message, its attempts and its bounce get copies of the same moment to other recipients.
 *
 * Called by `console.ts`, whose ten million messages would take an hour if written one by one. Contents are shared with the original, and the
 * event log stays as it is: its consumers have read it. What waits in the queue is not copied.
 */
import { join } from 'node:path'
import BetterSqlite from 'better-sqlite3'
import { recipientBucket } from '../../src/messages/message-store.js'
import type { Installation } from '../server/server-process.js'

const PER_TRANSACTION = 20_000
const CACHE_KB = 1_000_000

/** @param times how many of each there are then, up to 16 */
export function copyHistory({ dataDir }: Installation, times: number): void {
  const handle = new BetterSqlite(join(dataDir, 'postroad.db'))
  // In its defensive mode, SQLite keeps a journal.
  handle.unsafeMode()
  handle.pragma('journal_mode = OFF')
  handle.pragma('synchronous = OFF')
  handle.pragma('temp_store = MEMORY')
  handle.pragma(`cache_size = -${CACHE_KB}`)
  handle.function('bucket', { deterministic: true }, address => recipientBucket(String(address)))
  handle.exec(`
    create temp table originals as
      select row_number() over (order by id) as n, id from messages where id not in (select message_id from queue) order by id;
    create unique index temp.originals_by_n on originals (n);
    create temp table copies as
      with recursive numbers (copy) as (values (1) union all select copy + 1 from numbers where copy < ${times - 1})
      select copy, printf('%x', copy) || 'c' || printf('%x', copy) as tail, 'r' || char(96 + copy) as start from numbers`)
  const many = handle.prepare('select max(n) from originals').pluck().get() as number
  const statements = [
    messageCopies(handle),
    rowCopies(handle, 'attempts', { message_id: copiedId('message_id') }),
    rowCopies(handle, 'bounces', {
      id: copiedId('id'),
      message_id: copiedId('message_id'),
      email: 'copies.start || original.email',
    }),
  ]
  for (let first = 1; first <= many; first += PER_TRANSACTION) {
    handle.exec('begin')
    for (const statement of statements) statement.run({ first, last: first + PER_TRANSACTION - 1 })
    handle.exec('commit')
  }
  countCopies(handle, times)
  handle.pragma('journal_mode = WAL')
  handle.close()
}

/** Ids end in random digits; the few copies whose id exists already are left out. */
function copiedId(column: string): string {
  return `substr(original.${column}, 1, 33) || copies.tail`
}

function messageCopies(handle: BetterSqlite.Database): BetterSqlite.Statement {
  return rowCopies(handle, 'messages', {
    id: copiedId('id'),
    recipient: 'copies.start || original.recipient',
    recipient_bucket: 'bucket(copies.start || original.recipient)',
  })
}

function rowCopies(
  handle: BetterSqlite.Database,
  table: 'messages' | 'attempts' | 'bounces',
  changed: Readonly<Record<string, string>>,
): BetterSqlite.Statement {
  const columns = (handle.pragma(`table_info(${table})`) as { name: string }[])
    .map(({ name }) => name)
    .filter(name => name !== 'seq')
  const key = table === 'messages' ? 'id' : 'message_id'
  return handle.prepare(`
    insert or ignore into ${table} (${columns.join(', ')})
    select ${columns.map(name => changed[name] ?? `original.${name}`).join(', ')}
    from originals cross join ${table} as original on original.${key} = originals.id cross join copies
    where originals.n between @first and @last`)
}

/** Counters are those of the originals. */
function countCopies(handle: BetterSqlite.Database, times: number): void {
  handle.exec(`
    update daily_counters set count = count * ${times};
    update mail_totals set
      accepted = accepted * ${times} - ${times - 1} * (select count(*) from queue where queue.workspace_id = mail_totals.workspace_id),
      delivered = delivered * ${times}, bounced = bounced * ${times}, failed = failed * ${times},
      cancelled = cancelled * ${times}, suppressed = suppressed * ${times}`)
}
