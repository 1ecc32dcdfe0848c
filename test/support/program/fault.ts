/** What every fault of the database must leave as it was: accepted mail arrives, and what arrives twice was in flight. */
import { Client } from 'pg'
import type { Test } from 'tap'
import type { Sink } from '../smtp/sink.js'
import { until } from '../until.js'
import type { MailFlow } from './mail-flow.js'
import { psql } from '../db/real-postgres.js'

/** Which mails of the sink, by place, came while the fault lasted, or before and their delivery may not have been recorded. */
export interface Fault {
  readonly from: number
  readonly to: number
}

export interface FaultParts {
  readonly flow: MailFlow
  readonly sink: Sink
  /** Of the database. */
  readonly url: string
  /** Where the database is afterwards, if elsewhere. */
  readonly urlAfter?: string
}

/** Runs it, until mail is accepted again and nothing of what was in hand is left. */
export async function faultIn(
  { flow, sink, url, urlAfter = url }: FaultParts,
  run: () => Promise<void>,
): Promise<Fault> {
  const from = sink.accepted.length
  await allRecorded(url)
  await run()
  await flow.more(20)
  await allRecorded(urlAfter)
  return { from, to: sink.accepted.length }
}

/** Resolves once the delivery of every message that is stored now is recorded. */
async function allRecorded(url: string): Promise<void> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    const { rows } = await client.query<{ newest: string }>('select max(id) as newest from messages')
    await until(
      'the deliveries to be recorded',
      async () => {
        const open = `select 1 from messages where id <= $1 and status <> 'delivered' limit 1`
        return (await client.query(open, [rows[0]?.newest])).rows.length === 0
      },
      60_000,
    )
  } finally {
    await client.end()
  }
}

/** Clients learn that they have to come back, and when. */
export function refusesPolitely(t: Test, flow: MailFlow): void {
  const rest = flow.refusals.filter(({ by }) => by === 'REST')
  const smtp = flow.refusals.filter(({ by }) => by === 'SMTP')
  t.same([...new Set(rest.map(({ answer }) => answer))], ['503'], 'the API answers 503')
  t.ok(
    rest.every(({ retryAfter }) => Number(retryAfter) > 0),
    'with Retry-After',
  )
  t.ok(smtp.length > 0, 'SMTP refuses')
  t.same(
    smtp.filter(({ answer }) => !/^4\d\d /.test(answer)).map(({ answer }) => answer),
    [],
    'for now',
  )
  const replies = [...new Set(smtp.map(({ answer }) => answer))]
  t.comment(
    `refused: ${rest.length} by REST, ${smtp.length} by SMTP (${replies.join('; ')}), ${flow.unanswered} without answer`,
  )
}

export interface Account {
  readonly flow: MailFlow
  readonly sink: Sink
  /** Of the database. */
  readonly url: string
  readonly faults: readonly Fault[]
}

/** Waits until nothing is queued, and compares what arrived with what was accepted. */
export async function deliversAll(t: Test, { flow, sink, url, faults }: Account): Promise<void> {
  await until(
    'every message to be delivered',
    () => psql(url, `select 1 from messages where status <> 'delivered' limit 1`).length === 0,
    60_000,
  )
  const { accepted, repeated, missing } = flow
  const [stored] = psql(url, 'select count(*) from messages')
  t.comment(
    `accepted ${accepted.size}, stored ${stored}, arrived ${sink.accepted.length}, repeated ${repeated.length}`,
  )
  t.same(missing, [], 'every accepted mail arrived')
  t.same(
    repeated.filter(({ at }) => !faults.some(({ from, to }) => at >= from && at < to)),
    [],
    'only mail in flight arrived twice',
  )
}
