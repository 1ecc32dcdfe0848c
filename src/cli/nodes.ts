/** `postroad nodes`: the servers that share the database. */
import type { Command } from 'commander'
import type { Node } from '../appliance/system/node-routes.js'
import { withApi } from './api.js'
import { printResult, table, type CliContext, type CommonOptions } from './context.js'
import { apiCommand } from './options.js'

const MAX_NODES = 1_000

export function nodesCommand(program: Command, context: CliContext): void {
  apiCommand(program, 'nodes', 'list the servers that share the database').action((options: CommonOptions) =>
    withApi(context, options, async ({ admin }) => {
      const nodes = await admin.list<Node>('/nodes', {}, MAX_NODES)
      printResult(context, options, nodes, () =>
        table(
          ['NODE', 'STARTED', 'ALIVE UNTIL', 'DOES FOR ALL'],
          nodes.map(node => [node.name, node.started_at, node.alive_until, node.leases.join(', ')]),
        ),
      )
    }),
  )
}
