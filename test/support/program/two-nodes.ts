/** Two servers on one PostgreSQL database, whose mail goes to one sink. */
import type { Test } from 'tap'
import { openSink } from '../smtp/sink.js'
import { until } from '../until.js'
import { initialise, install, routeTo, type Serving } from './process.js'

export interface Node extends Serving {
  readonly name: string
}

/** The second shares the first one's database, and nothing else. */
export async function openTwo(t: Test, env: Readonly<Record<string, string>> = {}) {
  const sink = await openSink(t)
  const first = await initialise(t, { env: { ...routeTo(sink.port), ...env } })
  const second = install(t, {
    env: {
      ...routeTo(sink.port),
      ...env,
      POSTROAD_DATABASE_URL: first.environment['POSTROAD_DATABASE_URL'] ?? '',
    },
  })
  second.writeConfig('')
  const nodes: Node[] = []
  for (const [at, one] of [first, second].entries())
    nodes.push({ ...(await one.serve()), name: `node ${at + 1}` })
  const [one, two] = nodes
  if (!one || !two) throw new Error('a node is missing')
  await until('both to be known', () => first.sql('select id from nodes').length === 2)
  return { sink, first, one, two }
}
