/** The nodes that share the database, in the admin API. */
import Type, { type Static } from 'typebox'
import { listNodes, type ClusterNode } from '../../cluster/node-store.js'
import { isoTime } from '../../core/moments.js'
import type { Database } from '../../db/database.js'
import { adminListRoute } from '../../http/admin-route.js'
import { Id, Moment } from '../../http/answer/answer-fields.js'
import { listingOf, PageQuery } from '../../http/pagination.js'
import type { Route } from '../../http/route.js'

export interface NodeParts {
  readonly database: Database
}

const NodeSchema = Type.Object(
  {
    id: Id({ description: 'Of one run of the server; another after a restart.' }),
    name: Type.String({ description: '`hostname` of its configuration.' }),
    started_at: Moment(),
    alive_until: Moment({ description: 'If it is not heard of until then, other nodes take over its work.' }),
    leases: Type.Array(Type.String(), {
      description:
        'Work that it does for all nodes; `background`: jobs, campaigns, automations, webhooks, event consumers, inbound mail.',
    }),
  },
  { title: 'Node' },
)

export type Node = Static<typeof NodeSchema>

export function nodeRoutes({ database }: NodeParts): Route[] {
  return [
    adminListRoute({
      method: 'GET',
      path: '/nodes',
      access: { permission: 'system:read', scope: 'appliance' },
      operationId: 'listNodes',
      chapter: 'System',
      summary: 'List nodes.',
      description:
        'Servers that share the database; with SQLite there is one. Times are by the clock of the database.',
      query: PageQuery,
      item: NodeSchema,
      handle: async (_request, page) => listingOf(await listNodes(database.reader), page, nodeToApi),
    }),
  ]
}

function nodeToApi({ id, name, startedAt, aliveUntil, leases }: ClusterNode): Node {
  return { id, name, started_at: isoTime(startedAt), alive_until: isoTime(aliveUntil), leases: [...leases] }
}
