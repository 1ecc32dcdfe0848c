/** `postroad webhook list|deliveries|replay|test`. Secrets are never printed. */
import type { Command } from 'commander'
import type { Static } from 'typebox'
import { readMoment } from '../../core/moments.js'
import { DELIVERY_STATUSES } from '../../webhooks/delivery/delivery-store.js'
import type { deliveryToApi } from '../../webhooks/log/delivery-schema.js'
import type { TestResultSchema } from '../../webhooks/subscriptions/subscription-routes.js'
import type { OwnedWebhook } from '../../webhooks/webhook-admin-routes.js'
import { withApi, type Api, type ApiClient } from '../api.js'
import {
  printResult,
  table,
  UsageError,
  type CliContext,
  type CommonOptions,
  type ListOptions,
} from '../context.js'
import { apiCommand, choice, limited, segment } from '../options.js'

type ShownWebhook = Static<typeof OwnedWebhook>
type ShownDelivery = ReturnType<typeof deliveryToApi>

export function webhookCommands(program: Command, context: CliContext): void {
  const group = program.command('webhook').description('webhooks and their deliveries')
  listCommand(group, context)
  deliveriesCommand(group, context)
  replayCommand(group, context)
  testCommand(group, context)
}

function listCommand(group: Command, context: CliContext): void {
  limited(apiCommand(group, 'list', 'list webhooks, including disabled ones, newest first'), 100)
    .option('--workspace <name|id>', 'only this workspace')
    .action(async (options: ListOptions & { workspace?: string }) => {
      await withApi(context, options, async ({ admin }) => {
        const query = { workspace_id: options.workspace }
        const all = await admin.list<ShownWebhook>('/webhooks', query, options.limit)
        printResult(context, options, all, () =>
          table(
            ['ID', 'EVENT', 'STATUS', 'FAILING SINCE', 'WORKSPACE', 'TARGET'],
            all.map(one => [
              ...[one.id, one.event],
              one.disabledReason ?? (one.is_sandbox ? 'active, sandbox' : 'active'),
              ...[one.failingSince, one.workspace_id, one.targetUrl],
            ]),
          ),
        )
      })
    })
}

/** The REST API where the webhook is. */
async function ownerOf(api: Api, webhookId: string): Promise<ApiClient> {
  return restOf(api, await api.admin.get<ShownWebhook>(`/webhooks/${segment(webhookId)}`))
}

function restOf(api: Api, { workspace_id: workspaceId, is_sandbox: isSandbox }: ShownWebhook): ApiClient {
  return api.inWorkspace(workspaceId, { isSandbox })
}

function deliveriesCommand(group: Command, context: CliContext): void {
  const list = apiCommand(group, 'deliveries <webhook>', 'list deliveries of a webhook, newest first')
  choice(limited(list, 100), '--status <status>', DELIVERY_STATUSES).action(
    async (id: string, options: ListOptions & { status?: string }) => {
      await withApi(context, options, async api => {
        const rest = await ownerOf(api, id)
        const path = `/webhooks/${segment(id)}/deliveries`
        const items = await rest.list<ShownDelivery>(path, { status: options.status }, options.limit)
        printResult(context, options, items, () => deliveriesTable(items))
      })
    },
  )
}

function deliveriesTable(items: readonly ShownDelivery[]): string {
  return table(
    ['ID', 'EVENT', 'STATUS', 'ATTEMPTS', 'CREATED', 'NEXT ATTEMPT', 'LAST RESPONSE'],
    items.map(one => {
      const last = one.attempts.at(-1)
      return [
        ...[one.id, one.event, one.status, one.attempts.length, one.created_at, one.next_attempt_at],
        last ? (last.error ?? last.status_code) : null,
      ]
    }),
  )
}

interface ReplayOptions extends CommonOptions {
  readonly webhook?: string
  readonly since?: string
}

function replayCommand(group: Command, context: CliContext): void {
  apiCommand(
    group,
    'replay [delivery]',
    'redeliver one delivery, or all failed ones of a webhook since a given time',
  )
    .option('--webhook <id>', 'webhook whose failed deliveries to redeliver')
    .option('--since <time>', 'created at or after this time, ISO 8601')
    .action(async (delivery: string | undefined, options: ReplayOptions) => {
      const { webhook, since } = options
      if (
        (delivery === undefined) === (webhook === undefined) ||
        (delivery !== undefined && since !== undefined)
      )
        throw new UsageError('pass a delivery id, or --webhook and --since')
      if (webhook !== undefined && readMoment(since ?? '') === undefined)
        throw new UsageError('--since is not an ISO 8601 date or time')
      await withApi(context, options, async api => {
        const replayed =
          webhook === undefined
            ? await replaySingle(api, delivery ?? '')
            : await replayFailed(await ownerOf(api, webhook), webhook, since ?? '')
        printResult(context, options, { replayed }, () => `${replayed} queued for redelivery`)
      })
    })
}

async function replaySingle(api: Api, id: string): Promise<number> {
  const { webhook } = await api.admin.get<{ webhook: ShownWebhook }>(`/webhook-deliveries/${segment(id)}`)
  await restOf(api, webhook).send('POST', `/webhooks/deliveries/${segment(id)}/replay`)
  return 1
}

async function replayFailed(rest: ApiClient, webhook: string, since: string): Promise<number> {
  let replayed = 0
  for (;;) {
    const found = await rest.send<{ replayed: number; has_more: boolean }>(
      'POST',
      `/webhooks/${segment(webhook)}/replay`,
      { since },
    )
    replayed += found.replayed
    if (!found.has_more) return replayed
  }
}

function testCommand(group: Command, context: CliContext): void {
  apiCommand(group, 'test <webhook>', 'send a test event to a webhook').action(
    async (id: string, options: CommonOptions) => {
      await withApi(context, options, async api => {
        const rest = await ownerOf(api, id)
        const result = await rest.send<Static<typeof TestResultSchema>>(
          'POST',
          `/webhooks/${segment(id)}/test`,
        )
        printResult(context, options, result, () =>
          result.error === null
            ? `status ${result.status_code} after ${result.response_time_ms} ms`
            : `no response: ${result.error}`,
        )
        if (!result.success) context.fail()
      })
    },
  )
}
