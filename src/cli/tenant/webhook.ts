/**
 * `postroad webhook list|deliveries|replay|test`. A running server picks up replays within a second.
 *
 * Tests are sent by this process. Secrets are never printed.
 */
import type { Command } from 'commander'
import type { Appliance } from '../../appliance/appliance.js'
import { AppError } from '../../core/errors.js'
import { isUuid } from '../../core/ids.js'
import { isoTime, isoTimeOrNull, readMoment } from '../../core/moments.js'
import type { Queries } from '../../db/database.js'
import { openOutgoingCalls } from '../../appliance/outgoing-calls.js'
import { DELIVERY_STATUSES, type DeliveryStatus } from '../../webhooks/delivery/delivery-store.js'
import { listDeliveries, type LoggedDelivery } from '../../webhooks/log/delivery-log-store.js'
import { deliveryToApi } from '../../webhooks/log/delivery-schema.js'
import { replayAllFailed, replayOne, requireDelivery } from '../../webhooks/log/replay.js'
import { sendTest } from '../../webhooks/subscriptions/subscriptions.js'
import { subscriptionToApi } from '../../webhooks/subscriptions/subscription-schema.js'
import {
  findAnySubscription,
  listAnySubscriptions,
  type Subscription,
} from '../../webhooks/subscriptions/subscription-store.js'
import {
  getWorkspace,
  printResult,
  table,
  UsageError,
  withAppliance,
  type CliContext,
  type CommonOptions,
  type ListOptions,
} from '../context.js'
import { choice, command, limited } from '../options.js'

export function webhookCommands(program: Command, context: CliContext): void {
  const group = program.command('webhook').description('webhooks and their deliveries')
  listCommand(group, context)
  deliveriesCommand(group, context)
  replayCommand(group, context)
  testCommand(group, context)
}

function listCommand(group: Command, context: CliContext): void {
  limited(command(group, 'list', 'list webhooks, including disabled ones, newest first'), 100)
    .option('--workspace <name|id>', 'only this workspace')
    .action(async (options: ListOptions & { workspace?: string }) => {
      await withAppliance(context, options, async ({ database: { reader } }) => {
        const { workspace, limit } = options
        if (workspace !== undefined) await getWorkspace(reader, workspace)
        const all = await listAnySubscriptions(reader, workspace, limit)
        const shown = all.map(one => ({ ...subscriptionToApi(one), workspace_id: one.workspaceId }))
        printResult(context, options, shown, () =>
          table(
            ['ID', 'EVENT', 'STATUS', 'FAILING SINCE', 'WORKSPACE', 'TARGET'],
            all.map(one => [
              one.id,
              one.event,
              one.disabledReason ?? (one.isSandbox ? 'active, sandbox' : 'active'),
              isoTimeOrNull(one.failingSince),
              one.workspaceId,
              one.targetUrl,
            ]),
          ),
        )
      })
    })
}

function deliveriesCommand(group: Command, context: CliContext): void {
  const list = command(group, 'deliveries <webhook>', 'list deliveries of a webhook, newest first')
  choice(limited(list, 100), '--status <status>', DELIVERY_STATUSES).action(
    async (id: string, options: ListOptions & { status?: DeliveryStatus }) => {
      const { limit, status } = options
      await withAppliance(context, options, async ({ database: { reader } }) => {
        const subscription = await getWebhook(reader, id)
        const filter = status === undefined ? {} : { status }
        const { items } = await listDeliveries(reader, subscription.id, filter, { limit, offset: 0 })
        printResult(context, options, items.map(deliveryToApi), () => deliveriesTable(items))
      })
    },
  )
}

function deliveriesTable(items: readonly LoggedDelivery[]): string {
  return table(
    ['ID', 'EVENT', 'STATUS', 'ATTEMPTS', 'CREATED', 'NEXT ATTEMPT', 'LAST RESPONSE'],
    items.map(one => {
      const last = one.attempts.at(-1)
      return [
        one.id,
        one.event,
        one.status,
        one.attempts.length,
        isoTime(one.createdAt),
        isoTimeOrNull(one.nextAttemptAt),
        last ? (last.error ?? last.statusCode) : null,
      ]
    }),
  )
}

interface ReplayOptions extends CommonOptions {
  readonly webhook?: string
  readonly since?: string
}

function replayCommand(group: Command, context: CliContext): void {
  command(
    group,
    'replay [delivery]',
    'redeliver one delivery, or all failed ones of a webhook since a given time',
  )
    .option('--webhook <id>', 'webhook whose failed deliveries to redeliver')
    .option('--since <time>', 'created at or after this time, ISO 8601')
    .action(async (delivery: string | undefined, options: ReplayOptions) => {
      await withAppliance(context, options, async appliance => {
        const replayed =
          delivery === undefined
            ? await replaySince(appliance, options)
            : await replaySingle(appliance, delivery, options)
        printResult(context, options, { replayed }, () => `${replayed} queued for redelivery`)
      })
    })
}

async function replaySingle(
  { database, world }: Appliance,
  id: string,
  { webhook, since }: ReplayOptions,
): Promise<number> {
  if (webhook !== undefined || since !== undefined)
    throw new UsageError('pass a delivery id, or --webhook and --since')
  await database.write(async tx => replayOne(tx.db, await requireDelivery(tx.db, id), world.clock.now()))
  return 1
}

async function replaySince({ database, world }: Appliance, options: ReplayOptions): Promise<number> {
  const { webhook, since = '' } = options
  if (webhook === undefined) throw new UsageError('pass a delivery id, or --webhook and --since')
  const moment = readMoment(since)
  if (moment === undefined) throw new UsageError('--since is not an ISO 8601 date or time')
  const subscription = await getWebhook(database.reader, webhook)
  const now = world.clock.now()
  return replayAllFailed(database, subscription, { since: moment, most: Infinity, now })
}

function testCommand(group: Command, context: CliContext): void {
  command(group, 'test <webhook>', 'send a test event to a webhook').action(
    async (id: string, options: CommonOptions) => {
      await withAppliance(context, options, async appliance => {
        const { database, world, newId, box } = appliance
        const subscription = await getWebhook(database.reader, id)
        const calls = openOutgoingCalls(appliance)
        try {
          const parts = { ...world, database, newId, box, outgoingCalls: calls.of }
          const result = await sendTest(parts, subscription)
          const shown = {
            success: result.isSuccess,
            status_code: result.statusCode,
            response_time_ms: result.durationMs,
            error: result.error,
            response: result.response,
          }
          printResult(context, options, shown, () =>
            result.error === null
              ? `status ${result.statusCode} after ${result.durationMs} ms`
              : `no response: ${result.error}`,
          )
          if (!result.isSuccess) context.fail()
        } finally {
          calls.close()
        }
      })
    },
  )
}

/** @throws AppError not_found */
async function getWebhook(db: Queries, id: string): Promise<Subscription> {
  const found = isUuid(id) ? await findAnySubscription(db, id.toLowerCase()) : undefined
  if (!found) throw new AppError('not_found', `no webhook ${id}`)
  return found
}
