/**
 * The part of the queue that a command works on: a message, domain, site, workspace, or everything.
 *
 * A site's destinations are found as the running server finds them, by resolving every queued destination. Throws a UsageError unless
 * exactly one part is given.
 */
import type { Command } from 'commander'
import { isUuid } from '../../core/ids.js'
import type { Appliance } from '../../appliance/appliance.js'
import { destinationsOf } from '../../queue/operator/queue-status.js'
import { listDestinations, type QueueSelection } from '../../queue/operator/queue-admin-store.js'
import { siteLocator } from '../../appliance/open-delivery.js'
import { mustFindWorkspace, UsageError, type CommonOptions } from '../context.js'

export interface SelectOptions extends CommonOptions {
  readonly domain?: string
  readonly site?: string
  readonly workspace?: string
  readonly all?: boolean
}

type Named = QueueSelection | { readonly site: string }

export function selectOptions(command: Command): Command {
  return command
    .option('--domain <domain>', 'mail to this domain')
    .option('--site <name>', 'mail to this site, as named by `queue summary --by site`')
    .option('--workspace <name|id>', 'mail of this workspace')
}

/** @param fallback selection if none is given; undefined: one is required */
export function readSelection(id: string | undefined, options: SelectOptions, fallback?: Named): Named {
  const { domain, site, workspace, all } = options
  const named: Named[] = []
  if (id !== undefined) named.push({ messageId: id })
  if (domain !== undefined) named.push({ destination: domain.toLowerCase() })
  if (site !== undefined) named.push({ site })
  if (workspace !== undefined) named.push({ workspaceId: workspace })
  if (all) named.push({ isAll: true })
  if (named.length === 0 && fallback) named.push(fallback)
  const [selection] = named
  if (!selection || named.length > 1)
    throw new UsageError('pass exactly one of: a message id, --domain, --site, --workspace, --all')
  return selection
}

/** Resolves a site to its queued destinations, and a workspace's name to its id. */
export async function resolveSelection(appliance: Appliance, named: Named): Promise<QueueSelection> {
  if ('workspaceId' in named && !isUuid(named.workspaceId))
    return { workspaceId: (await mustFindWorkspace(appliance.database.reader, named.workspaceId)).id }
  if (!('site' in named)) return named
  const queued = await listDestinations(appliance.database.reader)
  return { destinations: await destinationsOf(named.site, queued, siteLocator(appliance)) }
}
