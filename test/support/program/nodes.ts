/** Several servers on one PostgreSQL database, each with its own host name, and a mail host that all deliver to. */
import type { Test } from 'tap'
import { initialise, install, routeTo, type Installation, type Serving } from './process.js'
import { allKnown } from './database-nodes.js'
import { openSink } from '../smtp/sink.js'

type Environment = Readonly<Record<string, string>>

export interface Node extends Serving, Pick<Installation, 'run' | 'json'> {
  readonly name: string
  readonly installation: Installation
}

export interface NodeView {
  readonly name: string
  readonly state: string
  readonly roles: readonly string[]
  readonly leases: readonly string[]
}

/** Nodes `mx1.postroad.test`, `mx2...` on one database, which know each other; the workspace has no limits. @param environments of each node */
export async function openNodes(t: Test, environments: readonly Environment[]) {
  const sink = await openSink(t)
  const shared = { ...routeTo(sink.port), POSTROAD_SHUTDOWN_GRACE: '10s' }
  const first = await initialise(t, { env: { ...shared, ...named(1), ...environments[0] } })
  first.sql('update workspaces set hourly_limit = 0, daily_limit = 0')
  const database = { POSTROAD_DATABASE_URL: first.environment['POSTROAD_DATABASE_URL'] ?? '' }
  const nodes: Node[] = []
  for (const [at, env] of environments.entries()) {
    const installation =
      at === 0 ? first : install(t, { env: { ...shared, ...database, ...named(at + 1), ...env } })
    if (at > 0) installation.writeConfig('')
    nodes.push({
      ...installation,
      ...(await installation.serve()),
      name: `mx${at + 1}.postroad.test`,
      installation,
    })
  }
  const [one, two] = nodes
  if (!one || !two) throw new Error('a node is missing')
  const list = () => one.json<NodeView[]>('nodes')
  await allKnown(nodes)
  return { sink, first, one, two, list }
}

/** Two nodes with the same environment. */
export const openTwo = (t: Test, env: Environment = {}) => openNodes(t, [env, env])

const named = (number: number) => ({ POSTROAD_HOSTNAME: `mx${number}.postroad.test` })
const mailTo = (to: string) => ({
  to: [to],
  from_email: 'shop@sender.test',
  subject: 'Hello',
  html: '<p>Hello</p>',
})

/**
 * The last sign of life of a node that was killed or stopped becomes too old, as it is after `ALIVE_MS`: the others remove the node at their next
 * sign. A node that lives renews it.
 */
export function expireSign({ sql }: Pick<Installation, 'sql'>, { name }: Pick<Node, 'name'>): void {
  sql(`update nodes set alive_until = 0 where name = '${name}'`)
}

export async function sendMails(node: Serving, key: string, count: number): Promise<void> {
  await Promise.all(
    Array.from({ length: count }, (_, at) => node.send(key, mailTo(`p${at}@d${at % 12}.test`))),
  )
}

export const deliveredBy = async (node: Serving) =>
  Number(
    /postroad_delivery_attempts_total\{destination="other",outcome="delivered"\} (\d+)/.exec(
      await (await fetch(`${node.baseUrl}/metrics`)).text(),
    )?.[1],
  )

/** Queries that show how far the work of nodes has come. */
const STANDINGS = {
  nodes: 'select id, name, roles, is_stopping from nodes',
  leases: 'select leases.name, nodes.name as node from leases join nodes on nodes.id = leases.node_id',
  imports: 'select id, status, rows_done, created, updated from contact_imports',
  campaigns: `select seq, status, next_at, started_at, fixed_before, fixed_through, fixed_at, recipients, pending, queued, done,
    skipped from campaigns`,
  recipients: 'select campaign, status, reason, count(*) from campaign_recipients group by 1, 2, 3',
  messages: 'select status, count(*) from messages group by 1',
  queue: `select lane, claimed_by, attempts, is_held, count(*), min(next_attempt_at) as next_attempt_at from queue
    group by 1, 2, 3, 4`,
  cursors: 'select * from event_cursors',
  events: 'select kind, count(*), min(seq) as first, max(seq) as last from events group by 1',
  // Of recipients whose mail no consumer has counted.
  unread: `select events.seq, events.xmin as transaction, events.kind, events.message_id from events
    join campaign_recipients on campaign_recipients.message_id = events.message_id
    where campaign_recipients.status = 'sent' order by events.seq limit 50`,
  jobs: 'select * from jobs',
  transactions: `select pid, state, wait_event_type, wait_event, now() - xact_start as open_for, left(query, 120) as query
    from pg_stat_activity where datname = current_database() and xact_start is not null and pid <> pg_backend_pid()`,
}
const LAST_LINES = 40

/** For a test that waited in vain: what the database holds, what each node reports, and its last log lines. */
export async function standing(nodes: Pick<Installation, 'sql'>, serving: readonly Node[], key: string) {
  const tables = Object.entries(STANDINGS).flatMap(([name, query]) => [
    `${name}:`,
    ...nodes.sql(query).map(row => `  ${JSON.stringify(row)}`),
  ])
  const reports = await Promise.all(
    serving.map(async node => {
      const asked = async (path: string) => {
        try {
          return JSON.stringify((await node.get(path, { key })).body)
        } catch (error) {
          return String(error)
        }
      }
      const lines = node.log
        .filter(({ level }) => level !== 'debug')
        .slice(-LAST_LINES)
        .map(line => `  ${JSON.stringify(line)}`)
      return [
        `${node.name}: ${await asked('/health')}`,
        `  ${await asked('/api/v1/campaigns')}`,
        `  ${(await metricsOf(node)).join('\n  ')}`,
        ...lines,
      ]
    }),
  )
  return [`now: ${Date.now()}`, ...tables, ...reports.flat()].join('\n')
}

async function metricsOf(node: Serving): Promise<string[]> {
  try {
    const text = await (await fetch(`${node.baseUrl}/metrics`)).text()
    return text
      .split('\n')
      .filter(line => /^postroad_(queue|delivery|site|node|event)/.test(line) && !line.includes('_bucket'))
  } catch (error) {
    return [String(error)]
  }
}

export const queued = (nodes: Pick<Installation, 'sql'>) =>
  nodes.sql<{ queued: number }>('select count(*)::int as queued from queue')[0]?.queued
