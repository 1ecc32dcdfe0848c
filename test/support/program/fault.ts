/** What every fault of the database must leave as it was: accepted mail arrives, and what arrives twice was in flight. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Test } from 'tap'
import type { Sink } from '../smtp/sink.js'
import { until } from '../until.js'
import type { MailFlow } from './mail-flow.js'
import { psql } from '../db/real-postgres.js'

/** A mail's delivery is recorded well within this. */
const RECORDED_MS = 2_000

/** Which mails of the sink, by place, came while the fault lasted or so shortly before that their delivery may not have been recorded. */
export interface Fault {
  readonly from: number
  readonly to: number
}

/** Runs it, until mail is accepted again. */
export async function faultIn(flow: MailFlow, sink: Sink, run: () => Promise<void>): Promise<Fault> {
  const from = sink.accepted.length
  await sleep(RECORDED_MS)
  await run()
  await flow.more(20)
  // What was in hand when it ended.
  await sleep(RECORDED_MS)
  return { from, to: sink.accepted.length }
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
