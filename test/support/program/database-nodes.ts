/** Several servers on one PostgreSQL database. */
import type { Test } from 'tap'
import { until } from '../until.js'
import { install, type Installation, type InstallOptions, type Serving } from './process.js'

export interface Nodes {
  readonly nodes: readonly Serving[]
  /** The first one's, for commands and SQL. */
  readonly first: Installation
  /** A live key without limits. */
  readonly key: string
  /** One more. */
  add(options?: InstallOptions): Promise<Serving>
}

/** @param database URL of an empty database @param options of every node, and of each by itself */
export async function openNodes(
  t: Test,
  database: string,
  each: readonly InstallOptions[],
  common: InstallOptions = {},
): Promise<Nodes> {
  const installed = (own: InstallOptions) =>
    install(t, { database, ...common, ...own, env: { ...common.env, ...own.env } })
  const first = installed(each[0] ?? {})
  const { workspace } = await first.json<{ workspace: { id: string } }>('init')
  await first.json('workspace', 'set', workspace.id, 'hourly_limit=0', 'daily_limit=0')
  const unlimited = ['--rate-limit', '0', '--email-rate-limit', '0']
  const { key } = await first.json<{ key: string }>(
    ...['key', 'create', '--workspace', workspace.id, '--name', 'of the tests', ...unlimited],
  )
  const nodes = [await first.serve()]
  for (const own of each.slice(1)) nodes.push(await installed(own).serve())
  return { nodes, first, key, add: (own = {}) => installed(own).serve() }
}

/** Resolves once each node has seen all of them: until then it takes the shares and limits of those it does not know. */
export async function allKnown(nodes: readonly Serving[]): Promise<void> {
  for (const { baseUrl } of nodes)
    await until('the nodes to know each other', async () => {
      const metrics = await (await fetch(`${baseUrl}/metrics`)).text()
      return metrics.includes(`postroad_nodes{role="http"} ${nodes.length}\n`)
    })
}
