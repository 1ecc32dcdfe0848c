/** Deleting what is old, table by table, on both databases: the old rows go, oldest first and so many at a time; the young stay. */
import t from 'tap'
import { sql } from 'kysely'
import { deleteExpiredAnswers } from '../../src/accounts/idempotency-store.js'
import {
  deleteConversionsBefore,
  deleteProductViewsBefore,
} from '../../src/analytics/conversions/conversion-store.js'
import { deleteCountersBefore } from '../../src/analytics/statistics/counter-store.js'
import { deleteQuartersBefore } from '../../src/analytics/statistics/quarter-store.js'
import { deleteRecentBefore } from '../../src/messages/recent-counter-store.js'
import { LAST_ID } from '../../src/core/ids.js'
import type { Queries } from '../../src/db/database.js'
import { deleteBouncesBefore } from '../../src/deliverability/bounces/bounce-store.js'
import { deleteDenialsBefore } from '../../src/deliverability/bounces/domain-denial-store.js'
import { deleteReportsBefore } from '../../src/deliverability/reports/report-store.js'
import { deleteActivitiesBefore } from '../../src/events/activity-store.js'
import { deleteEventsBefore } from '../../src/events/store.js'
import { deleteOrphanedParts, insertContent } from '../../src/messages/content-store.js'
import { deleteBatchesBefore } from '../../src/msa/batch-store.js'
import { eachDatabase } from '../support/db/database.js'
import { insertRows } from '../support/db/rows.js'
import { CONTENT } from '../support/mailroom.js'
import type { Rows } from '../db/migration-rows.js'

type Row = Rows[string][number]

interface Table {
  readonly name: string
  /** @param at its moment; also distinguishes it from others */
  readonly row: (at: number) => Row
  readonly time: string
  readonly remove: (db: Queries, before: number, limit: number) => Promise<number>
}

const HOUR_MS = 3_600_000

const TABLES: readonly Table[] = [
  {
    name: 'activities',
    row: at => ({
      ...{ workspace_id: 'w', actor_type: 'operator', action: 'domain.added', subject: 's', details: '{}' },
      created_at: at,
    }),
    time: 'created_at',
    remove: deleteActivitiesBefore,
  },
  {
    name: 'email_batches',
    row: at => ({
      ...{
        id: `b${at}`,
        workspace_id: 'w',
        key_id: 'k',
        is_sandbox: 0,
        total: 1,
        sent: 1,
        skipped: 0,
        failed: 0,
      },
      ...{ errors: '[]', created_at: at, released_at: at },
    }),
    time: 'released_at',
    remove: deleteBatchesBefore,
  },
  {
    name: 'bounces',
    row: at => ({
      ...{ id: `b${at}`, workspace_id: 'w', message_id: `m${at}`, email: 'a@x.example', type: 'permanent' },
      ...{ subtype: 'no_such_mailbox', cause: 'recipient', scope: 'address', smtp_status: '5.1.1' },
      ...{ diagnostic_code: '550', is_sandbox: 0, created_at: at },
    }),
    time: 'created_at',
    remove: deleteBouncesBefore,
  },
  {
    name: 'domain_denials',
    row: at => ({
      ...{ domain: 'x.example', workspace_id: 'w', email: 'a@x.example', message_id: `m${at}`, is_ours: 0 },
      denied_at: at,
    }),
    time: 'denied_at',
    remove: deleteDenialsBefore,
  },
  {
    name: 'domain_reports',
    row: at => ({
      ...{ id: `r${at}`, kind: 'dmarc', domain: 'x.example', org_name: 'o', report_id: `r${at}` },
      ...{ begin_at: at, end_at: at, received_at: at, summary: '{}', records: '[]' },
    }),
    time: 'received_at',
    remove: deleteReportsBefore,
  },
  {
    name: 'conversions',
    row: at => ({
      ...{ id: `c${at}`, workspace_id: 'w', contact_id: 'c', value: 1.5, currency: 'EUR', metadata: '{}' },
      ...{ is_sandbox: 0, created_at: at },
    }),
    time: 'created_at',
    remove: deleteConversionsBefore,
  },
  {
    name: 'product_views',
    row: at => ({
      ...{ id: `v${at}`, workspace_id: 'w', contact_id: 'c', product_id: 'p', product: '{}', is_sandbox: 0 },
      viewed_at: at,
    }),
    time: 'viewed_at',
    remove: deleteProductViewsBefore,
  },
  {
    name: 'daily_counters',
    row: at => ({ workspace_id: 'w', day: at, name: 'sends', count: 1 }),
    time: 'day',
    remove: deleteCountersBefore,
  },
  {
    name: 'quarter_counters',
    row: at => ({ workspace_id: 'w', dimension: 'all', starts_at: at, value: '', accepted: 1 }),
    time: 'starts_at',
    remove: deleteQuartersBefore,
  },
  {
    name: 'recent_counters',
    row: at => ({ workspace_id: 'w', span: 'minute', starts_at: at, name: 'sent', count: 1 }),
    time: 'starts_at',
    remove: (db, before, limit) => deleteRecentBefore(db, 'minute', before, limit),
  },
  {
    name: 'kept_answers',
    row: at => ({ id: `a${at}`, body_hash: 'h', status: 200, value: '{}', created_at: at }),
    time: 'created_at',
    // They are kept for an hour, that moment included.
    remove: (db, before, limit) => deleteExpiredAnswers(db, before - 1 + HOUR_MS, limit),
  },
  {
    name: 'events',
    row: at => ({
      ...{ kind: 'email.sent', workspace_id: 'w', message_id: `m${at}`, is_sandbox: 0, payload: '{}' },
      occurred_at: at,
    }),
    time: 'occurred_at',
    remove: (db, before, limit) => deleteEventsBefore(db, before, Number.MAX_SAFE_INTEGER, limit),
  },
]

for (const { name, row, time, remove } of TABLES)
  eachDatabase(t, `of ${name} the oldest go, so many at a time, and the young stay`, async (t, database) => {
    await database.write(tx => insertRows(tx.db, { [name]: [101, 102, 103, 104, 105].map(row) }))
    const left = async () => {
      const rows = await sql<{ at: number }>`
        select ${sql.ref(time)} as at from ${sql.table(name)} order by at`.execute(database.reader)
      return rows.rows.map(({ at }) => at)
    }
    t.equal(await database.write(tx => remove(tx.db, 101, 10)), 0)
    t.equal(await database.write(tx => remove(tx.db, 104, 2)), 2)
    t.same(await left(), [103, 104, 105])
    t.equal(await database.write(tx => remove(tx.db, 104, 10)), 1)
    t.equal(await database.write(tx => remove(tx.db, 104, 10)), 0)
    t.same(await left(), [104, 105])
  })

eachDatabase(t, 'events that a consumer has not passed stay, however old', async (t, database) => {
  const events = TABLES.find(({ name }) => name === 'events')
  await database.write(tx => insertRows(tx.db, { events: [101, 102, 103].map(at => events?.row(at) ?? {}) }))
  t.equal(await database.write(tx => deleteEventsBefore(tx.db, 200, 2, 10)), 2)
  t.equal(await database.write(tx => deleteEventsBefore(tx.db, 200, 2, 10)), 0)
})

eachDatabase(t, 'parts whose message was never accepted go, the others stay', async (t, database) => {
  await database.write(async tx => {
    await insertContent(tx.db, CONTENT)
    const octets = Uint8Array.of(0, 255)
    await insertRows(tx.db, {
      message_parts: [
        { content_id: CONTENT.id, part: 1, octets },
        { content_id: 'cut off', part: 1, octets },
        { content_id: 'cut off', part: 2, octets },
      ],
    })
  })
  await database.write(tx => deleteOrphanedParts(tx.db, LAST_ID))
  const parts = await database.reader.selectFrom('message_parts').select(['content_id', 'part']).execute()
  t.same(parts, [{ content_id: CONTENT.id, part: 1 }])
})
