/**
 * Column layouts of other systems' exports: the field of each column, and what the file implies for all rows.
 *
 * Used by `columns.ts` and `postroad suppress import`. A layout is detected if the columns identify it; the import shows which one was
 * used. Columns not in the layout are read as usual. Pure.
 *
 * Sources: listmonk `cmd/subscribers.go` (export), Mailchimp's audience export (files for subscribed, unsubscribed, cleaned and
 * nonsubscribed), SendGrid's suppression downloads, Postmark's and Brevo's API field names, Postal's table `suppressions`.
 */
import type { SuppressionReason } from '../../../deliverability/suppressions/suppression-store.js'
import type { EveryRow } from '../import.js'
import { foldedName } from './column-names.js'

export const PRESETS = [
  'postroad',
  'listmonk',
  'mailchimp',
  'sendgrid',
  'sendgrid_blocks',
  'postmark',
  'brevo',
  'postal',
] as const
export type PresetName = (typeof PRESETS)[number]
/** `none` disables detection. */
export const PRESET_CHOICES = [...PRESETS, 'none'] as const
export type PresetChoice = (typeof PRESET_CHOICES)[number]

export interface Layout {
  readonly preset: PresetName
  /** Fields by folded column name, null to skip; other columns are read as usual. */
  readonly fields: Readonly<Record<string, string | null>>
  readonly everyRow: EveryRow
  /** False for a suppression list, whose addresses do not become contacts. */
  readonly makesContacts: boolean
}

export const PLAIN_ROWS: EveryRow = { suppress: null, isUnsubscribed: false, isTyped: false }

/** Mailchimp's own member columns, skipped. */
const MAILCHIMP_SKIPPED = [
  ...[
    'memberrating',
    'optintime',
    'optinip',
    'confirmtime',
    'confirmip',
    'latitude',
    'longitude',
    'gmtoff',
    'dstoff',
  ],
  ...[
    'lastchanged',
    'leid',
    'euid',
    'unsubtime',
    'unsubcampaigntitle',
    'unsubcampaignid',
    'unsubreasonother',
  ],
  ...['cleantime', 'cleancampaigntitle', 'cleancampaignid'],
]

type Names = ReadonlySet<string>

/** Folded column names that identify a layout; layouts not listed must be requested. */
const DETECTED_BY: readonly (readonly [PresetName, readonly string[]])[] = [
  ['postroad', ['id', 'email', 'subscribed', 'bounced', 'lists', 'tags', 'createdat', 'updatedat']],
  ['listmonk', ['uuid', 'email', 'name', 'attributes', 'status']],
  ['mailchimp', ['emailaddress', 'leid', 'euid']],
  ['sendgrid', ['status', 'reason', 'email', 'created']],
  ['postmark', ['emailaddress', 'suppressionreason']],
  ['postal', ['type', 'address', 'reason', 'keepuntil']],
]

/** SendGrid's suppression files have no other columns. */
const MAX_SENDGRID_COLUMNS = 4

/** @returns the requested layout, or the one the columns identify */
export function layoutOf(
  columns: readonly string[],
  choice: PresetChoice | undefined,
  fileName = '',
): Layout | undefined {
  const names = new Set(columns.map(foldedName))
  const preset = choice ?? detected(names)
  return preset === undefined || preset === 'none'
    ? undefined
    : LAYOUTS[preset](names, fileName.toLowerCase())
}

function detected(names: Names): PresetName | undefined {
  const found = DETECTED_BY.find(([, columns]) => columns.every(name => names.has(name)))?.[0]
  return found === 'sendgrid' && names.size > MAX_SENDGRID_COLUMNS ? undefined : found
}

function contacts(preset: PresetName, fields: Layout['fields'], everyRow: Partial<EveryRow> = {}): Layout {
  return { preset, fields, everyRow: { ...PLAIN_ROWS, ...everyRow }, makesContacts: true }
}

/** @param suppress undefined if a status column determines it */
function suppressions(preset: PresetName, fields: Layout['fields'], suppress?: SuppressionReason): Layout {
  return { preset, fields, everyRow: { ...PLAIN_ROWS, suppress: suppress ?? null }, makesContacts: false }
}

function skipped(names: readonly string[]): Record<string, null> {
  return Object.fromEntries(names.map(name => [name, null]))
}

const LAYOUTS: Readonly<Record<PresetName, (names: Names, fileName: string) => Layout>> = {
  postroad: () => contacts('postroad', { lists: 'lists' }, { isTyped: true }),
  listmonk: () =>
    contacts('listmonk', {
      ...skipped(['uuid', 'createdat', 'updatedat']),
      name: 'name',
      status: 'status',
    }),
  mailchimp(names, fileName) {
    const fields = { ...skipped(MAILCHIMP_SKIPPED), name: 'name', unsubreason: 'unsubscribe_reason' }
    if (names.has('cleantime')) return contacts('mailchimp', fields, { suppress: 'hard_bounce' })
    if (names.has('unsubtime')) return contacts('mailchimp', fields, { suppress: 'unsubscribe' })
    // Known to a connected shop but never subscribed; the columns are those of the subscribed file.
    return contacts('mailchimp', fields, { isUnsubscribed: fileName.startsWith('nonsubscribed') })
  },
  sendgrid(names, fileName) {
    const ofSuppressions = skipped(['status', 'reason', 'created', 'ip'])
    if (names.has('status') && names.has('reason'))
      return suppressions('sendgrid', ofSuppressions, fileName.includes('block') ? 'manual' : 'hard_bounce')
    if (names.has('ip') && names.has('created')) return suppressions('sendgrid', ofSuppressions, 'complaint')
    // The file of invalid addresses.
    if (names.has('reason') && names.has('created'))
      return suppressions('sendgrid', ofSuppressions, 'hard_bounce')
    if (names.has('created')) return suppressions('sendgrid', ofSuppressions, 'unsubscribe')
    return contacts('sendgrid', skipped(['contactid', 'createdat', 'updatedat']))
  },
  sendgrid_blocks: () =>
    suppressions('sendgrid_blocks', skipped(['status', 'reason', 'created', 'ip']), 'manual'),
  postmark: () =>
    suppressions('postmark', {
      ...skipped(['createdat', 'messagestream', 'streamid', 'date']),
      suppressionreason: 'status',
      reason: 'status',
      origin: 'origin',
    }),
  brevo(names) {
    const common = {
      ...skipped([
        'contactid',
        'addedtime',
        'modifiedtime',
        'listids',
        'senderemail',
        'blockedat',
        'message',
      ]),
      emailblacklisted: 'blocked',
      emailblocklisted: 'blocked',
      blocklisted: 'blocked',
      emailmarketing: 'status',
      reason: 'status',
      reasoncode: 'status',
      reasonmessage: null,
    }
    return names.has('blockedat') ? suppressions('brevo', common) : contacts('brevo', common)
  },
  postal: () =>
    suppressions(
      'postal',
      { ...skipped(['id', 'type', 'reason', 'timestamp', 'keepuntil']), address: 'email' },
      'hard_bounce',
    ),
}

export interface Standing {
  readonly subscribed: boolean | null
  readonly suppress: SuppressionReason | null
}

const SUBSCRIBED: Standing = { subscribed: true, suppress: null }
const UNSUBSCRIBED: Standing = { subscribed: false, suppress: null }
function suppressed(suppress: SuppressionReason): Standing {
  return { subscribed: suppress === 'hard_bounce' ? null : false, suppress }
}

/** By status, reduced to lower-case letters. */
const STANDINGS = new Map<string, Standing>([
  ...['enabled', 'subscribed', 'active', 'confirmed'].map((word): [string, Standing] => [word, SUBSCRIBED]),
  ...['disabled', 'inactive', 'unconfirmed', 'nonsubscribed'].map((word): [string, Standing] => [
    word,
    UNSUBSCRIBED,
  ]),
  ...[
    ...['unsubscribed', 'unsubscribe'],
    ...['unsubscribedviama', 'unsubscribedviaemail', 'unsubscribedviaapi'],
  ].map((word): [string, Standing] => [word, suppressed('unsubscribe')]),
  ...['blocklisted', 'blacklisted', 'blocked', 'adminblocked', 'manualsuppression'].map(
    (word): [string, Standing] => [word, suppressed('manual')],
  ),
  ...['bounced', 'cleaned', 'hardbounce', 'hardbounced'].map((word): [string, Standing] => [
    word,
    suppressed('hard_bounce'),
  ]),
  ...['complained', 'complaint', 'spam', 'spamcomplaint', 'contactflaggedasspam'].map(
    (word): [string, Standing] => [word, suppressed('complaint')],
  ),
])

/** @param origin of the entry, if given: Postmark calls an unsubscribe a manual suppression by the recipient @throws Error */
export function readStanding(status: string, origin = ''): Standing {
  const standing = STANDINGS.get(status.toLowerCase().replace(/[^a-z]/g, ''))
  if (!standing) throw new Error(`unknown status ${JSON.stringify(status.slice(0, 40))}`)
  const isOwnWish = standing.suppress === 'manual' && origin.trim().toLowerCase() === 'recipient'
  return isOwnWish ? suppressed('unsubscribe') : standing
}
