/**
 * Reads delivery status notifications: the fields for the whole message and those of each recipient.
 *
 * Called by the reader of returned mail with the text of a message/delivery-status part, or with any text that holds such
 * fields. Interprets nothing. Pure.
 * Standards: RFC 3464 §2 (fields, groups divided by empty lines), RFC 6533 (UTF-8 forms); and with what is sent instead:
 * groups not divided, divided between each two fields, without a recipient field, continued lines that are not moved in.
 * Fails: never; text without such fields gives no recipients. At most 200 recipients are read.
 */
import { given } from '../../core/given.js'
import type { ReturnedRecipient } from './returned-mail.js'
import { isSameAddress, readAddress, readTypedAddress } from './recipient-address.js'

const MAX_RECIPIENTS = 200
const MAX_LINES = 6_000
/** Of one value with its continuation lines. */
const MAX_VALUE = 4_000

/** One per-recipient group as it is written. */
export interface StatusGroup {
  /** Empty where the field holds something else than an address: a file, a pipe. */
  readonly recipient: string
  readonly originalRecipient?: string
  readonly action?: NonNullable<ReturnedRecipient['action']>
  readonly status?: string
  readonly diagnostic?: string
  readonly remoteMta?: string
}

export interface DeliveryStatus {
  readonly envelopeId?: string
  readonly groups: readonly StatusGroup[]
  /** Fields stood there, though no recipient could be read from them. */
  readonly isPresent: boolean
}

type Fields = Map<string, string>

/** RFC 3464 §2.2, §2.3, and the X- fields that stand in for them. */
const MESSAGE_FIELDS: ReadonlySet<string> = new Set([
  'original-envelope-id',
  'reporting-mta',
  'dsn-gateway',
  'received-from-mta',
  'arrival-date',
])
const RECIPIENT_FIELDS: ReadonlySet<string> = new Set([
  'original-recipient',
  'final-recipient',
  'x-actual-recipient',
  'action',
  'status',
  'remote-mta',
  'diagnostic-code',
  'last-attempt-date',
  'final-log-id',
  'will-retry-until',
  'localized-diagnostic',
  'x-supplementary-info',
  'x-display-name',
])
/** `expired` is no action of RFC 3464, but sent by some; `deliverable` (RFC 3464 errata, probes) says nothing failed. */
const ACTIONS: Readonly<Record<string, NonNullable<ReturnedRecipient['action']>>> = {
  failed: 'failed',
  failure: 'failed',
  fail: 'failed',
  error: 'failed',
  expired: 'failed',
  bounced: 'failed',
  delayed: 'delayed',
  delivered: 'delivered',
  relayed: 'relayed',
  expanded: 'expanded',
}

export function readDeliveryStatus(text: string): DeliveryStatus {
  const message: Fields = new Map()
  const groups: Fields[] = []
  for (const paragraph of readParagraphs(text)) addParagraph(paragraph, message, groups)
  const envelopeId = message.get('original-envelope-id')?.trim()
  const read = groups.map(readGroup).filter(group => group !== undefined)
  return {
    ...(envelopeId ? { envelopeId } : {}),
    groups: read.slice(0, MAX_RECIPIENTS),
    isPresent: groups.length > 0 || message.has('reporting-mta'),
  }
}

/** Fields in the order written, an empty list between paragraphs collapsed; lines that are no field continue the last. */
function readParagraphs(text: string): [string, string][][] {
  const paragraphs: [string, string][][] = [[]]
  let isOpen = false
  for (const line of text.split('\n', MAX_LINES)) {
    if (line.trim() === '') {
      if (paragraphs.at(-1)?.length) paragraphs.push([])
      isOpen = false
      continue
    }
    const match = /^[ \t]{0,3}([A-Za-z][\w-]{2,60})[ \t]{0,20}:(.*)$/.exec(line)
    const name = match?.[1]?.toLowerCase() ?? ''
    const last = paragraphs.at(-1)?.at(-1)
    if (MESSAGE_FIELDS.has(name) || RECIPIENT_FIELDS.has(name)) {
      paragraphs.at(-1)?.push([name, (match?.[2] ?? '').slice(0, MAX_VALUE)])
      isOpen = true
    } else if (isOpen && last && (!match || /^\s/.test(line)) && last[1].length < MAX_VALUE) {
      last[1] += `\n${line.slice(0, MAX_VALUE)}`
    } else isOpen = false
  }
  return paragraphs
}

function addParagraph(paragraph: readonly [string, string][], message: Fields, groups: Fields[]): void {
  // A group without a recipient of its own continues the one before it.
  let group = isContinuation(paragraph) ? groups.at(-1) : undefined
  for (const [name, value] of paragraph) {
    if (MESSAGE_FIELDS.has(name)) {
      if (!message.has(name)) message.set(name, value)
      continue
    }
    if (group === undefined || startsNextGroup(group, name)) {
      if (groups.length >= 2 * MAX_RECIPIENTS) return
      group = new Map()
      groups.push(group)
    }
    if (!group.has(name)) group.set(name, value.trim())
  }
}

function isContinuation(paragraph: readonly [string, string][]): boolean {
  return !paragraph.some(([name]) => name === 'final-recipient' || name === 'original-recipient')
}

/** Groups that no empty line divides: a field that the group has already begins the next. */
function startsNextGroup(group: Fields, name: string): boolean {
  return ['final-recipient', 'original-recipient', 'action', 'status'].includes(name) && group.has(name)
}

function readGroup(fields: Fields): StatusGroup | undefined {
  const final = readTypedAddress(fields.get('final-recipient') ?? '')
  const original = readTypedAddress(fields.get('original-recipient') ?? '')
  const actual = readAddress(fields.get('x-actual-recipient') ?? '')
  const isMailbox = (address: string | undefined) => address?.includes('@') === true
  if (!fields.has('final-recipient') && !fields.has('original-recipient')) return undefined
  const recipient = [final, original, actual].find(isMailbox) ?? final ?? original ?? ''
  const action = ACTIONS[/^\s*([a-z-]{1,20})/i.exec(fields.get('action') ?? '')?.[1]?.toLowerCase() ?? '']
  const diagnostic = [fields.get('diagnostic-code'), fields.get('localized-diagnostic')]
    .map(value => withoutType(value ?? ''))
    .find(value => value !== '')
  const remoteMta = withoutType(fields.get('remote-mta') ?? '')
  const status = fields.get('status')
  return {
    recipient,
    ...(original !== undefined && !isSameAddress(original, recipient) ? { originalRecipient: original } : {}),
    ...given({ action }),
    ...(status ? { status } : {}),
    ...given({ diagnostic }),
    ...(remoteMta === '' ? {} : { remoteMta }),
  }
}

/** `smtp; 550 ...` without its type. */
function withoutType(value: string): string {
  return value.trim().replace(/^[A-Za-z][\w-]{0,29}[ \t]{0,9};\s*/, '')
}
