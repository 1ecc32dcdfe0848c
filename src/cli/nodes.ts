/** `postroad nodes`: the servers that share the database; `drain` and `resume` one. */
import type { Command } from 'commander'
import type { Node, NodeDrain } from '../appliance/system/node-routes.js'
import { withApi } from './api.js'
import { printResult, table, type CliContext, type CommonOptions } from './context.js'
import { apiCommand, segment } from './options.js'

const MAX_NODES = 1_000

export function nodesCommand(program: Command, context: CliContext): void {
  const group = apiCommand(program, 'nodes', 'list the servers that share the database').action(
    (options: CommonOptions) =>
      withApi(context, options, async ({ admin }) => {
        const nodes = await admin.list<Node>('/nodes', {}, MAX_NODES)
        printResult(context, options, nodes, () =>
          table(
            ['NODE', 'STATE', 'ROLES', 'STARTED', 'ALIVE UNTIL', 'DOES FOR ALL'],
            nodes.map(node => [
              node.name,
              node.state,
              node.roles.join(', '),
              node.started_at,
              node.alive_until,
              node.leases.join(', '),
            ]),
          ),
        )
      }),
  )
  const change = (verb: 'drain' | 'resume', description: string, done: (drain: NodeDrain) => string) =>
    apiCommand(group, `${verb} <node>`, description).action((name: string, options: CommonOptions) =>
      withApi(context, options, async ({ admin }) => {
        const drain = await admin.send<NodeDrain>('POST', `/nodes/${segment(name)}/${verb}`)
        printResult(context, options, drain, () => done(drain))
      }),
    )
  change(
    'drain',
    'have a node finish its work and take no more, until it is resumed',
    ({ name }) => `${name} is drained; resume it with: postroad nodes resume ${name}`,
  )
  change('resume', 'have a drained node take work again', ({ name, running }) =>
    running ? `${name} takes work again` : `${name} takes work again once it runs`,
  )
}
