/**
 * What part of the queue a command works on: a message, a domain, a site, a workspace, or everything.
 *
 * Called by the `queue` commands. A site is found as the running server finds it, by asking DNS for every queued
 * destination. Fails: a UsageError unless exactly one part is named.
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
    .option('--domain <domain>', 'all to this domain')
    .option('--site <name>', 'all to this site, as `queue summary --by site` names it')
    .option('--workspace <name|id>', 'all of this workspace')
}

/** @param fallback what is meant when nothing is named; undefined: something has to be */
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
    throw new UsageError('name one of: a message id, --domain, --site, --workspace, --all')
  return selection
}

/** Turns a site into the queued destinations that it serves now, and a workspace's name into its id. */
export async function resolveSelection(appliance: Appliance, named: Named): Promise<QueueSelection> {
  if ('workspaceId' in named && !isUuid(named.workspaceId))
    return { workspaceId: (await mustFindWorkspace(appliance.database.reader, named.workspaceId)).id }
  if (!('site' in named)) return named
  const queued = await listDestinations(appliance.database.reader)
  return { destinations: await destinationsOf(named.site, queued, siteLocator(appliance)) }
}
