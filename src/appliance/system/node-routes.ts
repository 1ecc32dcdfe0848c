/** The nodes that share the database, in the admin API: their state, and draining them. */
import Type, { type Static } from 'typebox'
import { ALIVE_MS } from '../../cluster/membership.js'
import { deleteDrain, insertDrain, isDrained, listNodes, type ClusterNode } from '../../cluster/node-store.js'
import { LEASES } from '../../cluster/leases.js'
import { NODE_STATES, ROLES } from '../../cluster/roles.js'
import type { Actor } from '../../core/actor.js'
import { AppError } from '../../core/errors.js'
import { isoTime } from '../../core/moments.js'
import { APPLIANCE } from '../../core/owner.js'
import type { Queries, Tx } from '../../db/database.js'
import type { Services } from '../../db/services.js'
import { recordActivity, type Activity } from '../../events/activity-store.js'
import { adminListRoute, adminRoute } from '../../http/admin-route.js'
import { Id, Moment } from '../../http/answer/answer-fields.js'
import { listingOf, PageQuery } from '../../http/pagination.js'
import type { Route } from '../../http/route.js'

export type NodeParts = Pick<Services, 'database' | 'clock'>

const NodeSchema = Type.Object(
  {
    id: Id({ description: 'Of one run of the server; another after a restart.' }),
    name: Type.String({ description: '`hostname` of its configuration.' }),
    state: Type.Enum([...NODE_STATES], {
      description:
        '`active`: takes work; `draining`: an operator drained it, so it takes no new work; `stopping`: it finishes its work and ends.',
    }),
    roles: Type.Array(Type.Enum([...ROLES]), {
      description: 'What it does: `[roles]` of its configuration.',
    }),
    started_at: Moment(),
    alive_until: Moment({ description: 'If it is not heard of until then, other nodes take over its work.' }),
    heartbeat_age_seconds: Type.Number({
      description: 'Time since the database last confirmed it; 0 with SQLite.',
    }),
    leases: Type.Array(Type.Enum([...LEASES]), {
      description:
        'Kinds of background work that it does for all nodes, which share them evenly. `jobs`: scheduled jobs, retention, certificates; ' +
        '`campaigns`: also feeds; `inbound`: inbound mail, bounces, delivery notifications; `contacts`: also imports.',
    }),
  },
  { title: 'Node' },
)

export type Node = Static<typeof NodeSchema>

const DrainSchema = Type.Object(
  {
    name: Type.String({ description: 'Host name of the node.' }),
    drained: Type.Boolean({ description: 'Whether it takes no new work until it is resumed.' }),
    running: Type.Boolean({ description: 'Whether it runs.' }),
  },
  { title: 'NodeDrain' },
)

export type NodeDrain = Static<typeof DrainSchema>

const Params = Type.Object({
  name: Type.String({ minLength: 1, maxLength: 255, description: 'Host name of the node.' }),
})

export function nodeRoutes(parts: NodeParts): Route[] {
  const { database } = parts
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
      handle: async (_request, page) =>
        listingOf(
          await listNodes(database.reader),
          page,
          node => nodeToApi(node, parts),
          ({ name }) => name,
        ),
    }),
    adminRoute({
      method: 'POST',
      path: '/nodes/:name/drain',
      access: { permission: 'system:write', scope: 'appliance' },
      operationId: 'drainNode',
      chapter: 'System',
      summary: 'Drain a node.',
      description:
        'Within a heartbeat (3 seconds) the node hands its destinations and its leases to other nodes, and `/health/ready` answers 503. It ' +
        'finishes what is in hand, keeps running and still accepts mail. It stays drained, also after a restart, until it is resumed. ' +
        'Draining a drained node changes nothing.',
      params: Params,
      response: DrainSchema,
      errors: ['not_found', 'conflict'],
      handle: ({ operator, params: { name } }) => drain(parts, operator.actor, name.toLowerCase()),
    }),
    adminRoute({
      method: 'POST',
      path: '/nodes/:name/resume',
      access: { permission: 'system:write', scope: 'appliance' },
      operationId: 'resumeNode',
      chapter: 'System',
      summary: 'Resume a drained node.',
      description: 'It takes work again within a heartbeat (3 seconds), or once it runs.',
      params: Params,
      response: DrainSchema,
      errors: ['not_found', 'conflict'],
      handle: ({ operator, params: { name } }) => resume(parts, operator.actor, name.toLowerCase()),
    }),
  ]
}

/** @throws AppError not_found, conflict */
async function drain({ database, clock }: NodeParts, actor: Actor, name: string): Promise<NodeDrain> {
  if (database.dialect === 'sqlite')
    throw new AppError(
      'conflict',
      'with SQLite there is one node, and no other takes its work: stop the server instead, or hold the queue',
    )
  return database.write(async tx => {
    const running = await isRunning(tx.db, name)
    if (!running && !(await isDrained(tx.db, name))) throw unknownNode(name)
    if (await insertDrain(tx.db, name, clock.now())) {
      await noteChange(tx, actor, clock.now(), { action: 'node.drained', subject: name })
    }
    return { name, drained: true, running }
  })
}

/** @throws AppError not_found, conflict */
async function resume({ database, clock }: NodeParts, actor: Actor, name: string): Promise<NodeDrain> {
  return database.write(async tx => {
    const running = await isRunning(tx.db, name)
    if (await deleteDrain(tx.db, name)) {
      await noteChange(tx, actor, clock.now(), { action: 'node.resumed', subject: name })
    } else {
      if (!running) throw unknownNode(name)
      throw new AppError('conflict', `node ${name} is not drained`)
    }
    return { name, drained: false, running }
  })
}

async function noteChange(tx: Tx, actor: Actor, now: number, activity: Activity): Promise<void> {
  await recordActivity(tx, { workspaceId: APPLIANCE, actor }, now, activity)
  tx.changed('nodes')
}

async function isRunning(db: Queries, name: string): Promise<boolean> {
  return (await listNodes(db)).some(node => node.name === name)
}

function unknownNode(name: string): AppError {
  return new AppError('not_found', `no node ${name}; GET /nodes lists them`)
}

function nodeToApi(node: ClusterNode, { database, clock }: NodeParts): Node {
  const { id, name, state, roles, startedAt, aliveUntil, leases } = node
  // A file's only node does not renew its row.
  const ageMs = database.dialect === 'sqlite' ? 0 : Math.max(0, clock.now() - (aliveUntil - ALIVE_MS))
  return {
    id,
    name,
    state,
    roles: [...roles],
    started_at: isoTime(startedAt),
    alive_until: isoTime(aliveUntil),
    heartbeat_age_seconds: Math.round(ageMs / 100) / 10,
    leases: [...leases],
  }
}
