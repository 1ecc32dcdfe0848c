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

export const queued = (nodes: Pick<Installation, 'sql'>) =>
  nodes.sql<{ queued: number }>('select count(*)::int as queued from queue')[0]?.queued
