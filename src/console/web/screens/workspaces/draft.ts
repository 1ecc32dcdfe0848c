/** Settings of a workspace while they are edited: '' stands for “not set”. */
import type { components } from '#api/admin'

type Workspace = components['schemas']['Workspace']
type Changes = components['schemas']['WorkspaceChanges']

const TEXTS = ['name', 'currency', 'timezone'] as const
const OPTIONAL = [
  'default_from_email',
  'default_from_name',
  'company_name',
  'company_address',
  'brand_color',
  'utm_source',
  'utm_medium',
  'utm_campaign',
] as const
const FLAGS = ['attribution', 'marketing', 'track_opens', 'track_clicks', 'allow_private_webhooks'] as const
const NUMBERS = ['hourly_limit', 'daily_limit'] as const

export type Draft = Record<(typeof TEXTS)[number] | (typeof OPTIONAL)[number], string> &
  Record<(typeof FLAGS)[number], boolean> &
  Record<(typeof NUMBERS)[number], number | null>

export function draftOf(workspace: Workspace): Draft {
  return {
    ...pick(workspace, TEXTS),
    ...pick(workspace, FLAGS),
    ...pick(workspace, NUMBERS),
    ...(Object.fromEntries(OPTIONAL.map(name => [name, workspace[name] ?? ''])) as Record<
      (typeof OPTIONAL)[number],
      string
    >),
  }
}

/** What differs, as the API takes it. */
export function changesOf(workspace: Workspace, draft: Draft): Changes {
  const wanted = [
    ...[...TEXTS, ...FLAGS].map(name => [name, draft[name]] as const),
    ...NUMBERS.map(name => [name, draft[name] ?? 0] as const),
    ...OPTIONAL.map(name => [name, draft[name].trim() === '' ? null : draft[name].trim()] as const),
  ]
  return Object.fromEntries(wanted.filter(([name, value]) => workspace[name] !== value)) as Changes
}

function pick<T extends object, K extends keyof T>(from: T, names: readonly K[]): Pick<T, K> {
  return Object.fromEntries(names.map(name => [name, from[name]])) as Pick<T, K>
}
